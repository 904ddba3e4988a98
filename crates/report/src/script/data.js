// Reads the data of a page: compressed JSON in which each column holds differences.

/** The most bytes of data that a page takes, uncompressed. */
export const LARGEST = 64e6;

/** Unpacks base64 text of JSON compressed by gzip. Throws a sentence if it is damaged or longer than `most` bytes. */
export async function unpack(text, most = LARGEST) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const reader = stream.getReader();
  const pieces = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    if (bytes > most) {
      reader.cancel().catch(() => {});
      throw new Error(`This page holds more than ${Math.round(most / 1e6)} MB of samples, so they are not drawn. ` +
        'Fewer runs or a longer interval of samples make a page that is.');
    }
    pieces.push(value);
  }
  return JSON.parse(await new Blob(pieces).text());
}

/** Sums differences to values, each divided by `unit`. */
function column(differences, unit) {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i += 1) {
    sum += differences[i];
    values[i] = sum / unit;
  }
  return values;
}

/** The unit of a quantity as the data has it, in the unit in which it is shown; an amount is shown in bytes or BDP. */
const UNITS = { bytes: { amount: true, per: 1 }, time: { unit: 'ms', per: 1e3 }, count: { unit: '', per: 1 } };

/**
 * The curves of `data`, each with its row, its label, times in seconds, round trips in ms, and amounts in bytes. `more` has
 * the panes of the quantities that not every curve has.
 */
export function curvesOf(data) {
  return data.curves.map((c) => {
    const more = (c.more ?? []).map((q) => ({ name: q.name, column: `more: ${q.name}`, ...UNITS[q.unit] }));
    return {
      more,
      ...Object.fromEntries(more.map((q, i) => [q.column, column(c.more[i].values, q.per)])),
      row: data.rows[c.row],
      label: data.labels[c.row],
      recording: data.kind === 'recording',
      t: column(c.t, 1e6),
      cwnd: column(c.cwnd, 1),
      inflight: column(c.inflight, 1),
      // 0: none was measured yet.
      rtt: column(c.rtt, 1e3).map((v) => v || NaN),
      delivered: column(c.delivered, 1),
      queue: c.queue && column(c.queue, 1),
      lost: column(c.lost, 1),
    };
  });
}

/** A number with three significant digits. */
export function short(x) {
  if (!Number.isFinite(x)) return '-';
  if (x === 0 || Number.isInteger(x)) return x.toLocaleString('en-US');
  const digits = Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : Math.abs(x) >= 1 ? 2 : 3;
  return x.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The value beside a line of a logarithmic axis; nothing where the axis begins at a value that is not round. */
export function logText(v) {
  const digit = v === null ? 0.5 : v / 10 ** Math.floor(Math.log10(v) + 1e-9);
  return Math.abs(digit - Math.round(digit)) < 1e-6 ? String(Number(v.toPrecision(6))) : '';
}

/** The values beside the lines of an axis, all with the same number of digits after the point. */
export function tickTexts(values) {
  const known = values.filter((v) => v !== null);
  const digits = Math.min(9, Math.max(0, ...known.map((v) => (String(Number(v.toPrecision(6))).split('.')[1] ?? '').length)));
  return values.map((v) => (v === null ? '' : v.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })));
}

/** The value of a curve's column at time `t`: that of the last sample by then; NaN before the first. */
export function at(curve, name, t) {
  let low = 0;
  let high = curve.t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve.t[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? NaN : curve[name][low - 1];
}

/** The lines of a dash, so that curves differ without colour. */
export const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [9, 3, 2, 3, 2, 3], [1, 3]];
const COLOURS = ['--blue', '--vermilion', '--green', '--purple', '--orange', '--sky', '--ink',
  '--wine', '--olive', '--brown', '--navy', '--grey'];

/** The colour (as a CSS variable) and the dashes of the curve with this number; of a recording, which has none, a line of ink. */
export function look(number) {
  if (number === null) return { colour: '--ink', dash: [] };
  return {
    colour: COLOURS[number % COLOURS.length],
    dash: DASHES[(number + Math.floor(number / COLOURS.length)) % DASHES.length],
  };
}

/** The value of a CSS variable. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** An element with attributes and children; text is text. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}
