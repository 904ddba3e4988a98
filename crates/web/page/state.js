// The settings of the page, and how they are written in its address.

/** The keys of a path that have a field, in the order in which a path is written. */
export const PATH_FIELDS = ['rate', 'rtt', 'queue', 'jitter', 'loss', 'ack_slots', 'ack_rate'];
/** The keys of a study that have a field. */
export const STUDY_FIELDS = ['startups', 'profile', 'set', 'avoidance', 'size', 'duration', 'app', 'against', 'remember', 'runs', 'seed'];

export const DEFAULTS = { path: 'rate=50Mbit rtt=100ms queue=1bdp', startups: 'standard,hystart' };

/** A study as the page has it: texts, by their keys; `files` has the texts of dropped traces. */
export function fresh() {
  return { ...DEFAULTS, files: {} };
}

/** The words of an inline path; quotes keep white space within a word. */
export function words(path) {
  return path.match(/(?:[^\s"]+|"[^"]*")+/g) ?? [];
}

/** The keys of an inline path. */
export function keysOf(path) {
  const keys = new Map();
  for (const word of words(path)) {
    const i = word.indexOf('=');
    if (i > 0) keys.set(word.slice(0, i), word.slice(i + 1).replace(/^"(.*)"$/, '$1'));
  }
  return keys;
}

/** The inline path of these keys. */
export function pathOf(keys) {
  return [...keys].filter(([, v]) => v !== '').map(([k, v]) => `${k}=${/\s/.test(v) ? `"${v}"` : v}`).join(' ');
}

/** Splits startups at commas; a piece key=value belongs to the startup before it. None means all. */
export function startupsOf(text) {
  if (text === 'all') return [];
  const all = [];
  for (const piece of (text ?? '').split(',').map((p) => p.trim()).filter(Boolean)) {
    if (piece.includes('=') && !piece.includes(':') && all.length) all[all.length - 1] += `,${piece}`;
    else all.push(piece);
  }
  return all;
}

/** The request of a study for the worker. */
export function requestOf(study, { runs } = {}) {
  const request = { path: study.path, startups: startupsOf(study.startups) };
  for (const key of ['avoidance', 'size', 'duration', 'profile', 'app', 'remember']) if (study[key]) request[key] = study[key];
  if (study.against) request.against = study.against.split(',').map((a) => a.trim()).filter(Boolean);
  if (study.set) request.set = Object.fromEntries(study.set.split(',').map((s) => s.split('=')).filter((p) => p.length === 2));
  for (const key of ['runs', 'seed']) if (study[key]) request[key] = Number(study[key]);
  if (runs) request.runs = Math.max(runs, 1);
  const named = Object.entries(study.files).filter(([name]) => study.path.includes(name));
  if (named.length) request.files = Object.fromEntries(named);
  return JSON.stringify(request);
}

const LARGEST_LINK = 24_000;

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** What follows `#` in the address. A dropped file is in it too, compressed, unless it is too long: then `left` names it. */
export async function toHash(state) {
  const out = new URLSearchParams();
  const left = [];
  for (const [prefix, study] of [['', state.a], ['b.', state.b]]) {
    if (!study) continue;
    for (const key of ['path', ...STUDY_FIELDS]) {
      if (study[key] && (prefix || study[key] !== DEFAULTS[key])) out.set(prefix + key, study[key]);
    }
    for (const [name, text] of Object.entries(study.files)) {
      if (!study.path.includes(name)) continue;
      const packed = await through(new CompressionStream('deflate-raw'), new TextEncoder().encode(text));
      const code = btoa(Array.from(packed, (b) => String.fromCharCode(b)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
      if (code.length > LARGEST_LINK) left.push(name);
      else out.set(`${prefix}file.${name}`, code);
    }
  }
  for (const key of ['amounts', 'times', 'log', 'charts', 'view', 'run', 'embed']) if (state[key]) out.set(`show.${key}`, state[key]);
  return { hash: out.toString().replaceAll('%3D', '=').replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%40', '@').replaceAll('%2F', '/'), left };
}

/** The settings that an address holds. Unknown keys are left out. */
export async function fromHash(hash) {
  const state = { a: fresh(), b: null };
  for (const [full, value] of new URLSearchParams(hash.replace(/^#/, ''))) {
    const isB = full.startsWith('b.');
    const key = isB ? full.slice(2) : full;
    if (isB) state.b ??= { path: DEFAULTS.path, startups: DEFAULTS.startups, files: {} };
    const study = isB ? state.b : state.a;
    if (key === 'path' || STUDY_FIELDS.includes(key)) {
      study[key] = value;
    } else if (key.startsWith('file.')) {
      try {
        const packed = Uint8Array.from(atob(value.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
        study.files[key.slice(5)] = new TextDecoder().decode(await through(new DecompressionStream('deflate-raw'), packed));
      } catch {
        // The path then names a file that is missing, and the page says so.
      }
    } else if (key.startsWith('show.')) {
      state[key.slice(5)] = value;
    }
  }
  return state;
}
