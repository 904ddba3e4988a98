// The settings of one version: path, stack, startups, transfer and other flows.

import { el, short } from './data.js';
import { keysOf, pathOf, startupsOf } from './state.js';

/** Sliders of a path: their range is logarithmic. `read` turns what is written into the unit of the slider. */
const SLIDERS = [
  { key: 'rate', name: 'Rate', unit: 'Mbit', low: 0.5, high: 2000, shown: 'Mbit/s' },
  { key: 'rtt', name: 'Round trip', unit: 'ms', low: 1, high: 1000, shown: 'ms' },
];
const UNITS = { kbit: 1e-3, Mbit: 1, Gbit: 1e3, us: 1e-3, ms: 1, s: 1e3 };
const DISCIPLINES = ['drop the newest', 'codel', 'fq_codel', 'pie', 'red', 'dualpi2', 'fq'];
const APPS = ['bulk', 'web', 'video', 'browser'];

function number(text) {
  const found = /^([\d.]+)([A-Za-z]+)$/.exec(text ?? '');
  return found && UNITS[found[2]] ? Number(found[1]) * UNITS[found[2]] : null;
}

const rounded = (v) => Number(v.toPrecision(v >= 100 ? 3 : 2));

/** A form over `study`, a map of texts, which it changes; then it calls `act`. */
export class Form {
  constructor(names, study, act) {
    this.names = names;
    this.study = study;
    this.act = act;
    this.root = el('form', { class: 'settings', onsubmit: (e) => e.preventDefault() });
    this.build();
  }

  useTrace(name) {
    const keys = keysOf(this.study.path.includes('=') ? this.study.path : 'rtt=40ms queue=1bdp');
    keys.delete('rate');
    keys.delete('schedule');
    this.study.path = pathOf(new Map([['trace', name], ...keys]));
    this.build();
  }

  set(key, value) {
    if (value) this.study[key] = value;
    else delete this.study[key];
    this.act();
  }

  setPath(key, value) {
    const keys = keysOf(this.study.path);
    if (value) keys.set(key, value);
    else keys.delete(key);
    this.study.path = pathOf(keys);
    if (this.line) this.line.value = this.study.path;
    this.act();
  }

  text(name, key, hint, list) {
    const input = el('input', { type: 'text', value: this.study[key] ?? '', placeholder: hint, list, spellcheck: 'false', autocomplete: 'off' });
    input.addEventListener('change', () => this.set(key, input.value.trim()));
    return el('label', {}, `${name} `, input);
  }

  pathText(name, key, hint) {
    const input = el('input', { type: 'text', value: keysOf(this.study.path).get(key) ?? '', placeholder: hint, class: 'narrow', spellcheck: 'false', 'data-key': key });
    input.addEventListener('change', () => this.setPath(key, input.value.trim()));
    return el('label', {}, `${name} `, input);
  }

  select(name, key, options) {
    const input = el('select', { onchange: () => this.set(key, input.value === options[0][0] ? '' : input.value) },
      ...options.map(([value, text]) => el('option', { value }, text)));
    input.value = this.study[key] || options[0][0];
    return el('label', {}, `${name} `, input);
  }

  slider({ key, name, unit, low, high, shown }) {
    const keys = keysOf(this.study.path);
    const value = number(keys.get(key));
    if (value === null) return null;
    const output = el('output', {}, `${short(value)} ${shown}`);
    const input = el('input', {
      type: 'range', min: Math.log(low), max: Math.log(high), step: 'any', value: Math.log(Math.min(high, Math.max(low, value))),
      'data-key': key, 'aria-valuetext': `${short(value)} ${shown}`,
    });
    input.addEventListener('input', () => {
      const v = rounded(Math.exp(Number(input.value)));
      output.textContent = `${short(v)} ${shown}`;
      input.setAttribute('aria-valuetext', output.textContent);
      this.setPath(key, `${v}${unit}`);
    });
    return el('label', { class: 'slide' }, `${name} `, input, output);
  }

  queue() {
    const written = keysOf(this.study.path).get('queue') ?? '1bdp';
    const bdp = /^([\d.]+)bdp$/.exec(written);
    const discipline = DISCIPLINES.find((d) => written.split(/\s/)[0] === d) ?? DISCIPLINES[0];
    const size = bdp ? Number(bdp[1]) : 1;
    const output = el('output', {}, bdp ? `${short(size)} BDP` : written);
    const range = el('input', { type: 'range', min: Math.log(0.05), max: Math.log(10), step: 'any', value: Math.log(size), 'data-key': 'queue', 'aria-valuetext': output.textContent });
    range.disabled = discipline !== DISCIPLINES[0];
    range.addEventListener('input', () => {
      const v = rounded(Math.exp(Number(range.value)));
      output.textContent = `${short(v)} BDP`;
      range.setAttribute('aria-valuetext', output.textContent);
      this.setPath('queue', `${v}bdp`);
    });
    const select = el('select', { onchange: () => {
      this.setPath('queue', select.value === DISCIPLINES[0] ? '1bdp' : select.value);
      this.build();
    } }, ...DISCIPLINES.map((d) => el('option', { value: d }, d)));
    select.value = discipline;
    return [el('label', { class: 'slide' }, 'Queue ', range, output), el('label', {}, 'Discipline ', select)];
  }

  path() {
    const builtin = this.names.paths.find((p) => p.name === this.study.path);
    const select = el('select', { class: 'builtin', onchange: () => {
      this.study.path = select.value || 'rate=50Mbit rtt=100ms queue=1bdp';
      this.build();
      this.act();
    } }, el('option', { value: '' }, 'a path of my own'),
    ...this.names.paths.map((p) => el('option', { value: p.name }, p.ensemble ? `${p.name} (random for each run)` : p.name)));
    select.value = builtin ? builtin.name : '';
    this.line = el('input', { type: 'text', class: 'wide', value: this.study.path, spellcheck: 'false', autocomplete: 'off', 'data-key': 'path' });
    this.line.addEventListener('change', () => {
      this.study.path = this.line.value.trim();
      this.build();
      this.act();
    });
    const parts = [el('label', {}, 'Path ', select), el('label', { class: 'grow' }, 'as text ', this.line)];
    if (builtin) {
      parts.push(el('p', { class: 'note' }, builtin.about));
      if (!builtin.ensemble) {
        parts.push(el('button', { type: 'button', onclick: () => {
          this.study.path = `rate=${rounded(builtin.rate_bps / 1e6)}Mbit rtt=${rounded(builtin.base_rtt_s * 1e3)}ms queue=1bdp`;
          this.build();
          this.act();
        } }, 'Sliders near this path'));
      }
    } else if (this.study.path.includes('=')) {
      const [queue, discipline] = this.queue();
      parts.push(...SLIDERS.map((s) => this.slider(s)).filter(Boolean), queue, this.more(discipline,
        this.pathText('Jitter', 'jitter', '2ms'), this.pathText('Loss', 'loss', '0.1%'),
        this.pathText('ACK slots', 'ack_slots', '5ms'), this.pathText('ACK rate', 'ack_rate', '1Mbit')));
    }
    return el('fieldset', {}, el('legend', {}, 'Path'), ...parts);
  }

  /** Fields of a path that few need. */
  more(...fields) {
    return el('details', { class: 'grow', open: this.isMoreOpen, ontoggle: (e) => { this.isMoreOpen = e.target.open; } },
      el('summary', {}, 'More of the path'), el('div', { class: 'tools' }, ...fields));
  }

  startups() {
    const chosen = startupsOf(this.study.startups);
    const add = el('select', { 'aria-label': 'Add a startup', onchange: () => {
      this.set('startups', [...chosen, add.value].join(','));
      this.build();
    } }, el('option', { value: '' }, 'add a startup…'),
    ...this.names.startups.filter((s) => !chosen.includes(s.name)).map((s) => el('option', { value: s.name, title: s.about }, s.name)));
    const line = this.text('as text', 'startups', 'all');
    line.className = 'grow';
    line.querySelector('input').addEventListener('change', () => this.build());
    return el('fieldset', {}, el('legend', {}, 'Startups'),
      ...chosen.map((name) => el('button', { type: 'button', class: 'chip', 'aria-label': `Remove ${name}`,
        title: this.names.startups.find((s) => s.name === name.split(':')[0])?.about, onclick: () => {
          this.set('startups', chosen.filter((c) => c !== name).join(',') || 'all');
          this.build();
        } }, name, ' ×')), add, line,
      el('button', { type: 'button', onclick: () => { this.set('startups', 'all'); this.build(); } }, 'all'));
  }

  build() {
    const profiles = this.names.profiles.map((p) => [p.name, p.name]);
    profiles.sort((a, b) => Number(b[0] === 'linux-6.18') - Number(a[0] === 'linux-6.18'));
    const against = this.text('Flows beside it', 'against', 'cubic@-10s');
    this.root.replaceChildren(this.path(), this.startups(),
      el('details', { open: this.open, ontoggle: (e) => { this.open = e.target.open; } },
        el('summary', {}, 'Transfer and stack'), el('fieldset', { 'aria-label': 'Transfer and stack' },
        this.text('Size', 'size', '20 BDP'),
        this.select('Application', 'app', APPS.map((a) => [a, a])),
        this.select('Stack', 'profile', profiles),
        this.text('Settings', 'set', 'iw=4,pacing=off'),
        this.select('Avoidance', 'avoidance', [['cubic', 'cubic'], ...this.names.avoidances.filter((a) => a.name !== 'cubic').map((a) => [a.name, a.name])]),
        against,
        el('button', { type: 'button', onclick: () => { this.set('against', this.study.against ? '' : 'cubic@-10s'); this.build(); } },
          this.study.against ? 'No other flow' : 'A CUBIC flow is already there'),
        this.text('Runs', 'runs', '10; 30 if drawn'),
        this.text('Seed', 'seed', '1'))));
  }
}
