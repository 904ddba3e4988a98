// The playground: settings, the simulator in a worker, charts, verdict and table.

import { curvesOf, el, short } from './data.js';
import { Panes } from './panes.js';
import { save, toPng } from './save.js';
import { enhanceTable } from './tables.js';
import { chips, choice, distributions, field } from './view.js';
import { Form } from './form.js';
import { Scrubber } from './scrubber.js';
import { fresh, fromHash, requestOf, toHash } from './state.js';

/** Samples of a run that is drawn while something is dragged. */
const SAMPLES = 800;
/** The largest file that may be dropped. */
const LARGEST_FILE = 100e6;

/** Paths to begin with: what the button says, and the study. */
const STARTS = [
  ['A short path', { path: 'rate=50Mbit rtt=20ms queue=1bdp' }],
  ['A satellite, as a thesis measured it', { path: 'geo', size: '10MB' }],
  ['A satellite, as recorded', { path: 'geo-recorded', size: '10MB' }],
  ['A shallow queue', { path: 'rate=50Mbit rtt=100ms queue=0.1bdp' }],
];
/** The startups of these paths. */
const STARTUPS = 'standard,hystart,search';

/** Asks the worker. */
class Engine {
  constructor() {
    this.worker = new Worker('worker.js', { type: 'module' });
    this.waiting = new Map();
    this.next = 0;
    this.worker.onmessage = ({ data }) => {
      const asked = this.waiting.get(data.id);
      if (!asked) return;
      if (data.progress) {
        asked.progress?.(...data.progress);
        return;
      }
      this.waiting.delete(data.id);
      if (data.error) asked.failed(new Error(data.error));
      else asked.done(data.answer);
    };
    this.worker.onerror = (e) => {
      for (const asked of this.waiting.values()) asked.failed(new Error(e.message || 'The simulator could not be loaded.'));
      this.waiting.clear();
    };
  }

  /** Answers with `{ stopped: true }` if a newer request with the same key came. */
  ask(act, message, key = act, progress = null, transfer = []) {
    this.next += 1;
    const id = this.next;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed, progress });
      this.worker.postMessage({ ...message, id, act, key }, transfer);
    });
  }
}

/** One version: its form, its charts and its results. */
class Version {
  constructor(page, name, study) {
    this.page = page;
    this.name = name;
    this.study = study;
    this.chosen = null;
    this.form = new Form(page.names, study, () => page.changed(this));
    this.error = el('p', { class: 'refused', role: 'alert' });
    this.verdict = el('p', { class: 'verdict', role: 'status', 'aria-live': 'polite' });
    this.title = el('p', { class: 'about' });
    this.keys = el('div');
    this.panesRoot = el('div');
    this.panes = new Panes(this.panesRoot);
    this.table = el('div', { class: 'results' });
    this.many = el('div', { class: 'many' });
    this.scrubber = new Scrubber(page.engine, () => ({ request: requestOf(this.study), run: this.run() }));
    this.root = el('section', { class: 'version', 'aria-label': `Version ${name}` },
      this.form.root,
      el('div', { class: 'answer' }, this.error, this.verdict, this.title, this.keys, this.panesRoot, this.page.moreCharts(),
        el('details', { class: 'scrubbing', open: page.state.view === 'packets', ontoggle: (e) => this.toggled(e.target.open) },
          el('summary', {}, 'Packets on the path, moment by moment'), this.scrubber.root),
        this.table, this.many));
  }

  /** The packets were opened or closed. */
  toggled(open) {
    this.scrubber.isOpen = open;
    if (open && this.labels) this.scrubber.load(this.labels);
    this.page.state.view = this.page.versions.some((v) => v.scrubber.isOpen) ? 'packets' : undefined;
    this.page.remember();
  }

  run() {
    return Math.max(0, Number(this.page.state.run ?? 0) || 0);
  }

  /** Runs one run of each startup and draws it. */
  async draw() {
    this.root.setAttribute('aria-busy', 'true');
    try {
      const run = this.run();
      const request = requestOf(this.study, { runs: run + 1 });
      const answer = await this.page.engine.ask('curves', { request, run, samples: SAMPLES }, `curves${this.name}`);
      if (answer.stopped) return;
      this.error.textContent = '';
      this.verdict.textContent = answer.verdict;
      this.title.textContent = answer.title;
      this.table.innerHTML = answer.table;
      for (const t of this.table.querySelectorAll('table')) enhanceTable(t);
      const curves = curvesOf(answer.data);
      this.labels = answer.data.labels;
      for (const c of curves) c.index = answer.data.looks[c.label];
      const key = this.labels.join('\n');
      if (this.key !== key) {
        this.key = key;
        this.chosen = new Set(this.labels.length > 8 ? this.labels.slice(0, 6) : this.labels);
        const indexOf = new Map(Object.entries(answer.data.looks));
        this.keys.replaceChildren(chips(this.labels, this.chosen, indexOf, () => this.show(), (i) => this.panes.emphasise(i)));
      }
      this.curves = curves;
      const started = performance.now();
      this.show();
      this.page.timed(this, answer.ms, performance.now() - started);
      if (this.scrubber.isOpen) this.scrubber.load(this.labels);
      this.root.dataset.drawn = String(Number(this.root.dataset.drawn ?? 0) + 1);
    } catch (e) {
      this.error.textContent = e.message;
      this.root.dataset.failed = 'yes';
    } finally {
      this.root.removeAttribute('aria-busy');
    }
  }

  show() {
    if (!this.curves) return;
    const shown = this.curves.filter((c) => this.chosen.has(c.label));
    this.panes.set(shown, this.page.how(), { keepRange: true });
  }

  /** Makes all runs. */
  async all(report = false) {
    const bar = el('progress', { max: 1, value: 0, 'aria-label': 'Runs made' });
    const stop = el('button', { type: 'button', onclick: () => this.page.engine.ask('stop', {}, `study${this.name}`) }, 'Stop');
    this.many.replaceChildren(el('p', {}, bar, ' ', stop));
    try {
      const answer = await this.page.engine.ask('study', { request: requestOf(this.study), report, base: location.href.replace(/[?#].*/, '') }, `study${this.name}`,
        (done, of) => { bar.max = of; bar.value = done; });
      if (answer.stopped) {
        this.many.replaceChildren(el('p', { class: 'note' }, 'The runs were stopped.'));
        return null;
      }
      const { summary } = answer;
      const indexOf = new Map(Object.entries(summary.looks));
      const table = el('div', { class: 'results' });
      table.innerHTML = summary.table;
      for (const t of table.querySelectorAll('table')) enhanceTable(t);
      this.many.replaceChildren(
        el('h2', {}, 'All runs'),
        el('p', { class: 'verdict' }, summary.verdict),
        ...summary.decides.map((s) => el('p', {}, s)),
        table,
        el('h2', {}, 'Distributions over runs'),
        distributions(summary.rows, summary.labels, indexOf),
        ...summary.caveats.map((c) => el('p', { class: 'note' }, c)));
      this.many.dataset.runs = String(answer.rows.length);
      return answer;
    } catch (e) {
      this.many.replaceChildren(el('p', { class: 'refused' }, e.message));
      return null;
    }
  }
}

/** The page. */
class Playground {
  constructor(root) {
    this.root = root;
    this.engine = new Engine();
    this.root.append(el('p', { role: 'status' }, 'Loading the simulator…'));
  }

  how() {
    return { amounts: this.state.amounts ?? 'BDP', times: this.state.times ?? 's', log: this.state.log !== 'linear', few: this.state.charts !== 'all' };
  }

  /** A button that shows the charts besides the window's, or hides them. */
  moreCharts() {
    const says = () => (this.state.charts === 'all' ? 'Only the window' : 'More charts: in flight, round trip, queue, delivered, losses');
    const button = el('button', { type: 'button', class: 'more-charts', onclick: () => {
      this.state.charts = this.state.charts === 'all' ? undefined : 'all';
      for (const b of document.querySelectorAll('.more-charts')) b.textContent = says();
      for (const v of this.versions) v.show();
      this.remember();
    } }, says());
    return button;
  }

  async start() {
    this.names = await this.engine.ask('catalogue', {});
    await this.open(location.hash);
    addEventListener('hashchange', () => { if (location.hash !== this.hash) this.open(location.hash); });
    addEventListener('dragover', (e) => e.preventDefault());
    addEventListener('drop', (e) => {
      e.preventDefault();
      const file = e.dataTransfer.files[0];
      if (file) this.take(file);
    });
  }

  /** Shows the settings of an address. */
  async open(hash) {
    this.state = await fromHash(hash);
    // Whoever comes without settings sees the packets too.
    if (!hash || hash === '#') this.state.view = 'packets';
    this.hash = location.hash;
    document.body.classList.toggle('embedded', this.state.embed === 'yes');
    document.body.classList.toggle('packets', this.state.view === 'packets');
    this.versions = [new Version(this, 'A', this.state.a)];
    if (this.state.b) this.versions.push(new Version(this, 'B', this.state.b));
    this.layout();
    await Promise.all(this.versions.map((v) => v.draw()));
    this.root.dataset.ready = 'yes';
  }

  layout() {
    const set = (key, value, fallback) => {
      this.state[key] = value === fallback ? undefined : value;
      for (const v of this.versions) v.show();
      this.remember();
    };
    const select = (key, options) => {
      const s = choice(options, (v) => set(key, v, options[0][0]));
      s.value = this.state[key] ?? options[0][0];
      return s;
    };
    const runs = el('input', { type: 'number', min: 0, max: 9999, value: this.state.run ?? 0, class: 'narrow' });
    runs.addEventListener('change', () => {
      this.state.run = runs.value === '0' ? undefined : runs.value;
      this.remember();
      for (const v of this.versions) v.draw();
    });
    const first = () => this.versions[0];
    const button = (text, act) => el('button', { type: 'button', onclick: act }, text);
    this.note = el('p', { class: 'note', role: 'status' });
    this.speed = el('p', { class: 'note speed' });
    this.file = el('input', { type: 'file', id: 'file', onchange: (e) => { if (e.target.files[0]) this.take(e.target.files[0]); } });
    this.fork = el('input', { type: 'checkbox', id: 'fork', checked: true });
    this.analysis = el('div', { class: 'analysis' });
    this.root.replaceChildren(
      el('div', { class: 'tools starts', role: 'group', 'aria-label': 'Paths to begin with' },
        ...STARTS.map(([text, study]) => button(text, () => this.begin(study))),
        button('Make all runs', () => { for (const v of this.versions) v.all(); })),
      el('details', { class: 'settings-more', open: this.isMoreOpen, ontoggle: (e) => { this.isMoreOpen = e.target.open; } },
        el('summary', {}, 'More: units, scale, another run, two versions'),
        el('div', { class: 'tools', role: 'group', 'aria-label': 'What is drawn' },
          field('Amounts', select('amounts', [['BDP', 'BDP'], ['bytes', 'MB']])),
          field('Time', select('times', [['s', 'seconds'], ['rounds', 'round trips']])),
          field('Scale of windows', select('log', [['log', 'logarithmic'], ['linear', 'linear']])),
          field('Run', runs),
          button(this.state.b ? 'One version' : 'Compare two versions', () => {
            this.state.b = this.state.b ? null : { ...structuredClone(this.state.a) };
            this.versions = [first(), ...(this.state.b ? [new Version(this, 'B', this.state.b)] : [])];
            this.layout();
            this.remember();
            for (const v of this.versions.slice(1)) v.draw();
          }))),
      el('div', { class: this.versions.length > 1 ? 'versions two' : 'versions' }, ...this.versions.map((v) => v.root)),
      el('details', { class: 'downloads', open: true }, el('summary', {}, 'Take it with you'),
        el('div', { class: 'tools' },
          button('Copy link', async () => { await this.remember(); await navigator.clipboard?.writeText(location.href); this.note.textContent = 'The link is copied.'; }),
          button('Rows', async () => { const a = await first().all(); if (a) save('results.jsonl', 'application/jsonl', a.rows.map((r) => `${r}\n`).join('')); }),
          button('Study (TOML)', async () => save('study.toml', 'application/toml', await this.engine.ask('toml', { request: requestOf(first().study) }))),
          button('Report', async () => { const a = await first().all(true); if (a) save('report.html', 'text/html', a.report); }),
          button('SVG', () => save('slowstart.svg', 'image/svg+xml', first().panes.svg(first().title.textContent))),
          button('PNG', async () => save('slowstart.png', 'image/png', await toPng(first().panes.svg(first().title.textContent))))),
        el('p', {}, 'On the command line: '), el('pre', {}, this.command = el('code', { id: 'command' }))),
      el('details', { open: !this.state.embed }, el('summary', {}, 'A capture, a log or a trace of your own'),
        el('p', {}, 'Drop a file on this page, or choose one: a capture (pcap, pcapng), a qlog, a log of ss -tin, or another file that ',
          el('code', {}, 'slowstart replay'), ' reads is analysed here; a Mahimahi trace becomes the capacity of the path. Nothing is uploaded.'),
        el('p', {}, el('label', { for: 'file' }, 'File '), this.file),
        el('p', {}, el('label', {}, this.fork, 'Continue the largest transfer in the simulator, on a path fitted to it')), this.analysis),
      this.note, this.speed);
    this.remember();
  }

  /** Begins with another study. */
  begin(study) {
    this.state.a = { ...fresh(), startups: STARTUPS, ...study };
    this.state.b = null;
    this.versions = [new Version(this, 'A', this.state.a)];
    this.layout();
    this.versions[0].draw();
  }

  /** Something in a form changed. */
  changed(version) {
    this.remember();
    version.draw();
  }

  /** How long a redraw took. */
  timed(version, ms, drawn) {
    this.speed.textContent = `Simulated in ${ms.toFixed(0)} ms and drawn in ${drawn.toFixed(0)} ms.`;
    this.speed.dataset.ms = String(ms + drawn);
  }

  /** Writes the settings to the address. */
  async remember() {
    const { hash, left } = await toHash(this.state);
    history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
    this.hash = location.hash;
    if (left.length) this.note.textContent = `${left.join(', ')} is too long for a link: whoever opens it must drop the file again.`;
    try {
      this.command.textContent = await this.engine.ask('command', { request: requestOf(this.state.a) });
    } catch (e) {
      this.command.textContent = e.message;
    }
  }

  /** Takes a dropped file: a trace for the path, or a recording to analyse. */
  async take(file) {
    if (file.size > LARGEST_FILE) {
      this.analysis.replaceChildren(el('p', { class: 'refused', role: 'alert' },
        `${file.name}: found ${Math.round(file.size / 1e6)} MB, expected at most ${LARGEST_FILE / 1e6} MB in a page; slowstart replay has no such limit.`));
      return;
    }
    const head = await file.slice(0, 400).text();
    if (/^\s*\d+\s*(\n\s*\d+\s*)+/.test(head)) {
      const name = file.name.replace(/[^\w.-]/g, '-');
      this.state.a.files[name] = await file.text();
      this.versions[0].form.useTrace(name);
      this.changed(this.versions[0]);
      return;
    }
    this.analysis.replaceChildren(el('p', { role: 'status' }, 'Reading…'));
    try {
      const bytes = await file.arrayBuffer();
      const base = location.href.replace(/[?#].*/, '');
      const answer = await this.engine.ask('analyse', { name: file.name, bytes, fork: this.fork.checked, base }, 'analyse', null, [bytes]);
      const rows = answer.rows.map((r) => `${r}\n`).join('');
      this.analysis.replaceChildren(
        el('p', {}, `${file.name}: ${answer.rows.length} transfers. `,
          el('button', { type: 'button', onclick: () => save('results.jsonl', 'application/jsonl', rows) }, 'Rows')),
        answer.not_continued ? el('p', { class: 'note' }, `No transfer is continued in the simulator: ${answer.not_continued}.`) : null,
        answer.incomplete ? el('p', { class: 'note' }, `Reading ended early: ${answer.incomplete}`) : null,
        ...answer.transfers.flatMap((t) => [
          el('h3', {}, `${t.from} to ${t.to}`),
          el('p', { class: 'verdict' }, t.sentences.join(' ')),
          t.fork ? continuations(t) : null,
          t.page ? el('iframe', { title: `Report of ${t.from} to ${t.to}`, sandbox: 'allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox', srcdoc: t.page, class: 'report' }) : null,
        ]).filter(Boolean));
      this.analysis.dataset.rows = rows;
    } catch (e) {
      this.analysis.replaceChildren(el('p', { class: 'refused', role: 'alert' }, e.message));
    }
  }
}

/** The table of a transfer continued with each startup, the quickest first, below what was observed. */
function continuations(transfer) {
  const all = [...transfer.fork.startups].sort((a, b) => (a.done_s ?? Infinity) - (b.done_s ?? Infinity));
  const time = (s) => (s === null || s === undefined ? '-' : short(s));
  const table = el('table', {},
    el('thead', {}, el('tr', {}, ...['startup', 'exit', 'at (s)', 'class', 'done (s)', 'lost', 'queue (ms)'].map((h) => el('th', { scope: 'col' }, h)))),
    el('tbody', {},
      el('tr', {}, el('th', { scope: 'row' }, 'as observed'), ...['-', '-', '-', time(transfer.duration_s), '-', '-'].map((c) => el('td', {}, c))),
      ...all.map((f) => el('tr', {}, el('th', { scope: 'row' }, f.startup),
        ...[f.exit?.what ?? '-', time(f.exit?.time_s), f.class, time(f.done_s), short(f.lost_packets), short(f.peak_queue_delay_s === null ? NaN : f.peak_queue_delay_s * 1e3)].map((c) => el('td', {}, c))))));
  enhanceTable(table);
  return el('div', { class: 'scroll forked', tabindex: 0, role: 'region', 'aria-label': 'Continued in the simulator' }, table);
}

const app = document.getElementById('app');
const playground = new Playground(app);
playground.start().catch((e) => app.replaceChildren(el('p', { class: 'refused', role: 'alert' }, e.message)));
