// The report: choice of startups and runs, panes, distributions over runs, and downloads.

import { curvesOf, el, look, short, tickTexts, unpack } from './data.js';
import { save, ticks, toPng } from './save.js';
import { Panes } from './panes.js';
import { heatMap } from './map.js';
import { figures } from './figures.js';

/** More startups than this are not all drawn at first, where the page does not say which. */
const FEW = 6;
/** Pictures narrower than this many pixels have shorter names. */
const NARROW = 600;

/** What a distribution may show: of a row, or nothing. */
const MEASURES = [
  ['time to completion (s)', (r) => r.completion_s],
  ['goodput (Mbit/s)', (r) => r.goodput_bps / 1e6],
  ['time of exit (s)', (r) => r.exit?.time_s],
  ['window at exit (BDP)', (r) => (r.exit && r.bdp_bytes ? r.exit.detected_cwnd_bytes / r.bdp_bytes : null)],
  ['packets lost in startup', (r) => r.startup_lost_packets],
  ['peak queue (ms)', (r) => (r.peak_queue_delay_s === null ? null : r.peak_queue_delay_s * 1e3)],
];

/** A field with its label. */
export function field(label, input) {
  return el('label', {}, `${label} `, input);
}

/** A list of choices, each a value and its text. */
export function choice(options, act, attributes = {}) {
  const select = el('select', { ...attributes, onchange: () => act(select.value) },
    ...options.map(([value, name]) => el('option', { value }, name ?? value)));
  return select;
}

/** The rows of each label, in order of first appearance. */
function byLabel(rows, labels) {
  const groups = new Map();
  rows.forEach((row, i) => {
    if (!groups.has(labels[i])) groups.set(labels[i], []);
    groups.get(labels[i]).push(row);
  });
  return groups;
}

/** One point for each run and a line at the median, for each label. */
export function distributions(rows, labels, indexOf) {
  const groups = byLabel(rows, labels);
  const root = el('div', { class: 'distributions' });
  const plot = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Distributions over runs' });
  let measure = 0;
  let log = false;
  const draw = () => {
    const [name, of] = MEASURES[measure];
    const lines = [...groups].map(([label, all]) => ({
      label,
      values: all.map((r) => [r, of(r)]).filter(([, v]) => v !== null && v !== undefined && Number.isFinite(v) && (!log || v > 0)),
    })).filter((l) => l.values.length);
    const middle = (values) => {
      const v = values.map(([, x]) => x).sort((a, b) => a - b);
      return (v[(v.length - 1) >> 1] + v[v.length >> 1]) / 2;
    };
    lines.sort((a, b) => middle(a.values) - middle(b.values));
    const all = lines.flatMap((l) => l.values.map(([, v]) => v));
    const low = log ? Math.min(...all) : 0;
    const high = Math.max(...all, log ? 0 : 1e-12);
    const scale = log ? Math.log : (v) => v;
    const width = Math.max(280, Math.floor(plot.clientWidth || 900));
    const [left, most] = width < NARROW ? [118, 16] : [190, 28];
    const step = 22;
    const x = (v) => left + ((scale(v) - scale(low)) / (scale(high) - scale(low) || 1)) * (width - left - 20);
    const svg = (tag, attributes, ...children) => {
      const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
      for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
      node.append(...children);
      return node;
    };
    const title = (text) => svg('title', {}, text);
    const picture = svg('svg', { viewBox: `0 0 ${width} ${lines.length * step + 30}`, class: 'strips', role: 'img',
      'aria-label': `${name} of each run: ${lines.map((l) => `${l.label} median ${short(middle(l.values))}`).join(', ')}` });
    lines.forEach((line, i) => {
      const y = 12 + i * step;
      const { colour } = look(indexOf.get(line.label) ?? 0);
      picture.append(svg('text', { x: left - 8, y: y + 4, 'text-anchor': 'end' }, line.label.length > most ? `${line.label.slice(0, most - 1)}…` : line.label),
        svg('path', { d: `M${left} ${y}H${width - 20}`, class: 'grid' }));
      const m = x(middle(line.values));
      picture.append(svg('path', { d: `M${m} ${y - 8}v16`, style: 'stroke: var(--ink); stroke-width: 2.5' }, title(`${line.label}: median ${short(middle(line.values))}`)));
      for (const [row, v] of line.values) {
        picture.append(svg('circle', { cx: x(v).toFixed(1), cy: y, r: 4, style: `fill: var(${colour}); fill-opacity: .55` },
          title(`${line.label}, run ${row.run} (seed ${row.seed}): ${short(v)}`)));
      }
    });
    const end = lines.length * step + 22;
    const few = width < NARROW ? 4 : 8;
    const places = log ? decades(low, high) : ticks(low, high, few);
    const every = Math.ceil(places.length / few);
    const shown = places.filter((_, i) => i % every === 0);
    const texts = log ? shown.map(String) : tickTexts(shown);
    shown.forEach((v, i) => picture.append(svg('text', { x: x(v), y: end, 'text-anchor': 'middle' }, texts[i])));
    plot.replaceChildren(lines.length ? picture : el('p', {}, 'No run has this value.'));
  };
  root.append(el('div', { class: 'tools' },
    field('Measure', choice(MEASURES.map(([n], i) => [i, n]), (v) => { measure = Number(v); draw(); })),
    field('', el('input', { type: 'checkbox', 'aria-label': 'Logarithmic', onchange: (e) => { log = e.target.checked; draw(); } })), 'logarithmic'), plot);
  draw();
  let drawnFor = 0;
  new ResizeObserver(() => {
    if (plot.clientWidth === drawnFor) return;
    drawnFor = plot.clientWidth;
    draw();
  }).observe(plot);
  return root;
}

/** Values for lines across a logarithmic axis: 1, 2 and 5 times powers of ten. */
function decades(low, high) {
  const from = Math.floor(Math.log10(low));
  const all = [];
  for (let d = from; 10 ** d <= high; d += 1) all.push(...[1, 2, 5].map((f) => Number((f * 10 ** d).toPrecision(6))));
  return all.filter((v) => v >= low * 0.999 && v <= high * 1.001);
}

/** Buttons that choose what is drawn. `act` gets the chosen labels; `over` the label below the pointer, or null. */
export function chips(labels, chosen, indexOf, act, over) {
  const root = el('div', { class: 'chips', role: 'group', 'aria-label': 'Startups drawn' });
  const buttons = labels.map((label) => {
    const { colour, dash } = look(indexOf.get(label));
    const swatch = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    swatch.setAttribute('class', 'key');
    swatch.setAttribute('viewBox', '0 0 32 8');
    swatch.setAttribute('aria-hidden', 'true');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    line.setAttribute('d', 'M0 4H32');
    line.setAttribute('style', `stroke: var(${colour}); stroke-width: 3; stroke-dasharray: ${dash.join(' ') || 'none'}`);
    swatch.append(line);
    const button = el('button', { type: 'button', class: 'chip', 'aria-pressed': String(chosen.has(label)) }, swatch, label);
    button.addEventListener('click', () => {
      if (chosen.has(label)) chosen.delete(label);
      else chosen.add(label);
      button.setAttribute('aria-pressed', String(chosen.has(label)));
      act(chosen);
    });
    for (const [on, value] of [['mouseenter', label], ['mouseleave', null], ['focus', label], ['blur', null]]) {
      button.addEventListener(on, () => over(value === null || !chosen.has(label) ? null : indexOf.get(label)));
    }
    return button;
  });
  const all = (on) => {
    labels.forEach((label, i) => {
      if (on) chosen.add(label);
      else chosen.delete(label);
      buttons[i].setAttribute('aria-pressed', String(on));
    });
    act(chosen);
  };
  root.append(...buttons);
  if (labels.length > 2) {
    root.append(el('button', { type: 'button', onclick: () => all(true) }, 'all'), el('button', { type: 'button', onclick: () => all(false) }, 'none'));
  }
  return root;
}

/** Draws each group of charts when it comes near the screen, the first at once. */
export function startAll(groups) {
  const draw = (group) => start(group.querySelector('.fixed'), group.querySelector('script'), `group ${[...groups].indexOf(group)}`);
  const watch = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) {
        watch.unobserve(target);
        draw(target);
      }
    }
  }, { rootMargin: '600px' });
  [...groups].forEach((group, i) => (i === 0 ? draw(group) : watch.observe(group)));
}

/** Draws a page's data before `fixed`, the charts that it has without a script. Those are still what is printed. */
export async function start(fixed, packed, sync) {
  const message = el('p', { class: 'note', role: 'status' }, 'Reading samples…');
  fixed.before(message);
  let data;
  try {
    data = await unpack(packed.textContent);
  } catch (e) {
    message.textContent = e instanceof SyntaxError || e instanceof TypeError
      ? 'The samples of this page are damaged, so only the fixed charts are shown.' : e.message;
    message.className = 'note refused';
    fixed.classList.add('shown');
    return;
  }
  if (data.kind === 'map') {
    const map = heatMap(data, { chips, choice, field });
    fixed.classList.add('printed');
    message.replaceWith(map);
    map.dataset.ready = 'yes';
    return;
  }
  if (data.kind === 'figures') {
    const { root, ready } = figures(data, { chips });
    fixed.classList.add('printed');
    message.replaceWith(root);
    ready();
    root.dataset.ready = 'yes';
    return;
  }
  const curves = curvesOf(data);
  if (!curves.length) {
    message.remove();
    fixed.classList.add('shown');
    return;
  }
  const recording = data.kind === 'recording';
  // What the page says is drawn first; then the others.
  const named = data.first?.labels ?? [];
  const labels = [...new Set([...named, ...curves.map((c) => c.label)])];
  const indexOf = new Map(Object.entries(data.looks));
  for (const c of curves) c.index = indexOf.get(c.label);
  const chosen = new Set(named.length ? named : labels.slice(0, FEW));
  const how = { amounts: 'BDP', times: 's', log: true };
  // One run for all startups, so that all are over the same path.
  let which = data.first?.run ?? null;

  const pick = (label) => curves.find((c) => c.label === label && (which === null || c.row.run === which)) ?? null;
  const live = el('div', { class: 'live' });
  const missing = el('p', { class: 'note' });
  const panesRoot = el('div');
  const panes = new Panes(panesRoot, sync);
  // A few transfers that take much longer than the others do not make those narrow.
  const ends = labels.map((label) => { const row = pick(label)?.row; return row?.completion_s ?? row?.duration_s ?? 0; }).sort((a, b) => a - b);
  const until = recording ? null : 1.3 * ends[Math.ceil(0.75 * ends.length) - 1] || null;
  const draw = (keepRange = true) => {
    const wanted = labels.filter((l) => chosen.has(l));
    const found = wanted.map(pick);
    const gone = wanted.filter((_, i) => !found[i]);
    missing.textContent = gone.length ? `This page has no samples of this run of ${gone.join(', ')}.` : '';
    panes.set(found.filter(Boolean), { ...how }, { keepRange, until });
  };
  const runs = [...new Set(curves.map((c) => c.row.run))].sort((a, b) => a - b);
  const controls = el('div', { class: 'tools', role: 'group', 'aria-label': 'What is drawn' });
  if (which !== null && runs.length > 1) {
    const path = (run) => {
      const row = data.rows.find((r) => r.run === run);
      return `run ${run} (seed ${row.seed}): ${short(row.rate_bps / 1e6)} Mbit/s, ${short(row.base_rtt_s * 1e3)} ms`;
    };
    const options = runs.map((r) => [String(r), path(r)]);
    const select = choice(options, (v) => { which = Number(v); draw(); });
    select.value = String(which);
    controls.append(field('All over the path of', select));
  }
  controls.append(
    field('Amounts', choice([['BDP', 'BDP'], ['bytes', 'MB']], (v) => { how.amounts = v; draw(); })),
    field('Time', choice([['s', 'seconds'], ['rounds', 'round trips']], (v) => { how.times = v; draw(false); })),
    field('Scale of windows', choice([['log', 'logarithmic'], ['linear', 'linear']], (v) => { how.log = v === 'log'; draw(); })),
    field('Charts', choice([['over', 'over each other'], ['each', 'one for each startup']], (v) => {
      fixed.classList.toggle('printed', v === 'over');
      fixed.classList.toggle('shown', v === 'each');
      overlay.hidden = v !== 'over';
    })),
    el('button', { type: 'button', onclick: () => save('slowstart.svg', 'image/svg+xml', panes.svg(document.title)) }, 'SVG'),
    el('button', { type: 'button', onclick: async () => save('slowstart.png', 'image/png', await toPng(panes.svg(document.title))) }, 'PNG'),
    el('button', { type: 'button', onclick: () => save('results.jsonl', 'application/jsonl', data.rows.map((r) => `${JSON.stringify(r)}\n`).join('')) }, 'rows'),
  );
  const overlay = el('div', {},
    chips(labels, chosen, indexOf, () => draw(), (index) => panes.emphasise(index)), missing, panesRoot);
  live.append(controls, overlay);
  if (!recording && data.rows.length > labels.length) {
    live.append(el('h2', {}, 'Distributions over runs'), distributions(data.rows, data.labels, indexOf));
  }
  fixed.classList.add('printed');
  message.replaceWith(live);
  draw(false);
  live.dataset.ready = 'yes';
}
