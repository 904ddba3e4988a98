// Charts over time, one above the other, with one time axis: window, flight, round trip, queue, delivery and losses.

import { at, css, el, logText, look, short, tickTexts } from './data.js';
import { toSvg } from './save.js';

/** Spans of time into which a curve is divided for drawing: the least and the greatest value of each is kept. */
const SPANS = 600;

/** Up to so many curves, the name of each stands where it leaves slow start. */
const NAMED = 5;
/** What stands in place of values before a chart is pointed at. */
const HINT = 'Point at a chart to read its values; drag over a range to zoom. A ring is where slow start ends.';

/** What a pane shows. `amount` is in bytes or BDP; `recorded`: a recording has only one line of it;
 * `grows`: it doubles, so that a logarithmic axis shows more. */
const PANES = [
  { name: 'window', column: 'cwnd', amount: true, grows: true },
  { name: 'in flight', column: 'inflight', amount: true, recorded: true, grows: true },
  { name: 'round-trip time', column: 'rtt', unit: 'ms', recorded: true },
  { name: 'queue', column: 'queue', amount: true, simulated: true },
  { name: 'delivered', column: 'delivered', amount: true, recorded: true },
  { name: 'packets dropped', column: 'lost', unit: '', simulated: true },
];

/** Puts the samples of a curve on the common times `xs` (pairs for each span), in units of `scale`. */
function resample(curve, column, xs, timeUnit, scale, positive) {
  const out = new Array(xs.length).fill(null);
  const { t } = curve;
  const values = curve[column];
  const put = (x) => {
    const v = values[x] / scale;
    return positive && !(v > 0) ? null : v;
  };
  const step = (xs[2] - xs[0]) * timeUnit;
  let i = 0;
  const from = xs[0] * timeUnit;
  while (i < t.length && t[i] < from) i += 1;
  for (let span = 0; span < xs.length; span += 2) {
    const end = from + (span / 2 + 1) * step;
    if (i >= t.length) break;
    if (t[i] >= end) {
      // No sample here: a line from the one before to the next.
      if (i > 0) {
        const share = (xs[span] * timeUnit - t[i - 1]) / (t[i] - t[i - 1] || 1);
        const known = !positive || (values[i - 1] > 0 && values[i] > 0);
        if (known) out[span] = (values[i - 1] + share * (values[i] - values[i - 1])) / scale;
      }
      continue;
    }
    let [least, most] = [i, i];
    for (; i < t.length && t[i] < end; i += 1) {
      if (values[i] < values[least]) least = i;
      if (values[i] > values[most]) most = i;
    }
    const [a, b] = least < most ? [least, most] : [most, least];
    out[span] = put(a);
    out[span + 1] = put(b);
  }
  return out;
}

/** Charts in `root`. `set` gives them curves. All charts on the page with the same `sync` share one cursor. */
export class Panes {
  constructor(root, sync = 'slowstart') {
    this.root = root;
    this.sync = sync;
    this.plots = [];
    this.curves = [];
    this.how = { amounts: 'BDP', times: 's', log: false };
    this.range = null;
    this.emphasis = null;
    this.says = el('div', { class: 'readout', tabindex: 0, role: 'status', 'aria-live': 'polite' }, HINT);
    this.holder = el('div', { class: 'panes' });
    const tool = (label, title, act) => el('button', { type: 'button', title, onclick: act, 'aria-label': title }, label);
    this.tools = el('div', { class: 'tools', role: 'group', 'aria-label': 'Time axis' },
      tool('+', 'Zoom in', () => this.zoom(0.5)),
      tool('−', 'Zoom out', () => this.zoom(2)),
      tool('◀', 'Earlier', () => this.pan(-0.25)),
      tool('▶', 'Later', () => this.pan(0.25)),
      tool('Whole time', 'Whole time', () => this.show(null)));
    root.append(this.tools, this.says, this.holder);
    const redraw = () => this.build();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    new ResizeObserver(() => {
      const width = this.width();
      for (const p of this.plots) if (p.plot.width !== width) p.plot.setSize({ width, height: p.plot.height });
    }).observe(root);
  }

  width() {
    return Math.max(240, Math.floor(this.holder.clientWidth || this.root.clientWidth || 600));
  }

  /** Seconds in a unit of the time axis. */
  unit() {
    return this.how.times === 'rounds' ? this.curves[0]?.row.base_rtt_s || 1 : 1;
  }

  scale(pane, curve) {
    if (!pane.amount) return 1;
    return this.how.amounts === 'BDP' ? Math.max(1, curve.row.bdp_bytes) : 1e6;
  }

  isLog(pane) {
    return this.how.log && Boolean(pane.grows);
  }

  /** The unit of a pane as text. */
  unitName(pane) {
    return pane.amount ? (this.how.amounts === 'BDP' ? 'BDP' : 'MB') : pane.unit;
  }

  /**
   * Shows these curves, each with `index`, which determines its look. Without `keepRange` the time axis ends at `until`
   * seconds, if that is given and before the last sample.
   */
  set(curves, how, { keepRange = false, until = null } = {}) {
    const timesChanged = how.times !== this.how.times;
    const structure = (c, h) => JSON.stringify([c.map((x) => [x.label, x.index, x.recording, x.more.length]), h]);
    const same = this.plots.length > 0 && structure(curves, how) === structure(this.curves, this.how);
    this.curves = curves;
    this.how = how;
    if (!keepRange || timesChanged) {
      const end = (until ?? Infinity) / this.unit();
      this.range = end < this.whole()[1] ? [0, end] : null;
    }
    if (same) this.refresh();
    else this.build();
  }

  /** The whole time axis. */
  whole() {
    const last = this.curves.reduce((m, c) => Math.max(m, c.t.length ? c.t[c.t.length - 1] : 0), 0) || 1;
    return [0, last / this.unit()];
  }

  data(pane, curves) {
    const [from, to] = this.range ?? this.whole();
    const step = (to - from) / SPANS || 1;
    const xs = new Array(2 * SPANS);
    for (let i = 0; i < SPANS; i += 1) {
      xs[2 * i] = from + i * step;
      xs[2 * i + 1] = from + (i + 0.5) * step;
    }
    const unit = this.unit();
    // A value of 0 means that it is not known.
    const positive = this.isLog(pane) || pane.column === 'cwnd' || pane.column === 'rtt' || (pane.per && pane.unit !== '');
    return [xs, ...curves.map((c) => resample(c, pane.column, xs, unit, this.scale(pane, c), positive))];
  }

  shown() {
    const more = new Map(this.curves.flatMap((c) => c.more.map((p) => [p.column, p])));
    return [...PANES, ...more.values()].filter((p) => !this.how.few || p.column === 'cwnd').filter((p) => !(p.simulated && this.curves.every((c) => c.recording || !c[p.column])))
      .map((p) => ({ ...p, curves: p.recorded && this.curves[0]?.recording ? [{ ...this.curves[0], label: 'recorded', index: null }] : this.curves.filter((c) => c[p.column]) }));
  }

  build() {
    for (const p of this.plots) p.plot.destroy();
    this.holder.replaceChildren();
    this.plots = [];
    if (!this.curves.length) return;
    const width = this.width();
    const [ink, rule] = [css('--soft'), css('--rule')];
    const font = '12px system-ui, sans-serif';
    this.shown().forEach((pane, i, all) => {
      const last = i === all.length - 1;
      const title = `${pane.name}${this.unitName(pane) ? ` (${this.unitName(pane)})` : ''}`;
      const box = el('div', {
        class: 'pane', tabindex: 0, role: 'application', 'aria-roledescription': 'chart',
        'aria-label': `${title} over time. Arrow keys move the cursor, plus and minus zoom, Home shows the whole time.`,
      }, el('h3', {}, title));
      this.holder.append(box);
      const axis = { stroke: ink, font, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
      const plot = new uPlot({
        width,
        height: (pane.column === 'cwnd' ? 250 : 150) + (last ? 30 : 0),
        legend: { show: false },
        padding: [8, 12, 0, 0],
        cursor: {
          sync: { key: this.sync },
          drag: { x: true, y: false, setScale: false },
          points: { size: 6 },
        },
        scales: {
          x: { time: false, range: () => this.range ?? this.whole() },
          y: {
            distr: this.isLog(pane) ? 3 : 1,
            range: (u, low, high) => {
              // The curves decide; a level a little above them is shown too.
              const levels = pane.column === 'cwnd' ? this.levels().map((l) => l.value).filter((v) => v < 1.5 * (high ?? 0)) : [];
              const top = Math.max(high ?? 0, ...levels, pane.column === 'lost' ? 1 : 1e-9);
              if (!this.isLog(pane)) return [0, top * 1.05];
              return [Math.max((low ?? top / 10) * 0.8, top / 1e6), top * 1.8];
            },
          },
        },
        axes: [
          { ...axis, space: 60, ...(last ? { label: this.timeName(), labelFont: font } : {}) },
          { ...axis, size: 62, values: (u, all) => (this.isLog(pane) ? all.map((v) => logText(v)) : tickTexts(all)) },
        ],
        series: [{}, ...pane.curves.map((c) => {
          const { colour, dash } = look(c.index);
          return {
            label: c.label, stroke: css(colour), width: 1.7, dash, spanGaps: true, points: { show: false },
          };
        })],
        hooks: {
          draw: [(u) => { if (pane.column === 'cwnd') this.drawLevels(u); }],
          setSelect: [(u) => {
            if (u.select.width < 4) return;
            const range = [u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x')];
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            this.show(range);
          }],
          setCursor: [(u) => {
            if (u.cursor.left >= 0 && this.hovered === u) this.read(u.posToVal(u.cursor.left, 'x'));
          }],
        },
      }, this.data(pane, pane.curves), box);
      plot.over.addEventListener('mouseenter', () => { this.hovered = plot; });
      plot.over.addEventListener('dblclick', () => this.show(null));
      plot.over.addEventListener('wheel', (e) => {
        if (!e.ctrlKey && !e.shiftKey) return;
        e.preventDefault();
        const x = plot.posToVal(e.offsetX, 'x');
        if (e.shiftKey) this.pan(Math.sign(e.deltaY + e.deltaX) * 0.1);
        else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, x);
      }, { passive: false });
      box.addEventListener('keydown', (e) => this.key(e, plot));
      this.plots.push({ plot, pane });
    });
    this.paint();
  }

  refresh() {
    const shown = this.shown();
    this.plots.forEach((p, i) => {
      p.pane = shown[i];
      p.plot.setData(this.data(p.pane, p.pane.curves));
    });
  }

  /** The levels of the window's pane, if all curves have the same path. */
  levels() {
    const first = this.curves[0]?.row;
    if (!first || this.curves.some((c) => c.row.bdp_bytes !== first.bdp_bytes || c.row.buffer_bytes !== first.buffer_bytes)) return [];
    const scale = this.scale({ amount: true }, this.curves[0]);
    const levels = [{ name: this.curves[0].recording ? 'BDP' : 'link full (BDP)', value: first.bdp_bytes / scale }];
    if (first.buffer_bytes) levels.push({ name: 'queue full', value: (first.bdp_bytes + first.buffer_bytes) / scale });
    return levels.filter((l) => l.value > 0);
  }

  drawLevels(u) {
    const { ctx, bbox } = u;
    const dot = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * dot}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'alphabetic';
    ctx.lineWidth = dot;
    for (const level of this.levels()) {
      const y = u.valToPos(level.value, 'y', true);
      ctx.strokeStyle = css('--soft');
      ctx.fillStyle = css('--soft');
      ctx.setLineDash([6 * dot, 3 * dot]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.fillText(level.name, bbox.left + 6 * dot, y - 4 * dot);
    }
    ctx.setLineDash([]);
    // Where each startup was left: the time and window of its exit, and its name if there are few.
    const names = [];
    this.curves.forEach((c) => {
      const { exit } = c.row;
      if (!exit) return;
      const x = u.valToPos(exit.time_s / this.unit(), 'x', true);
      const y = u.valToPos(exit.detected_cwnd_bytes / this.scale({ amount: true }, c), 'y', true);
      if (!Number.isFinite(x) || !Number.isFinite(y)) return;
      ctx.globalAlpha = this.emphasis === null || this.emphasis === c.index ? 1 : 0.2;
      ctx.fillStyle = css('--paper');
      ctx.strokeStyle = css(look(c.index).colour);
      ctx.lineWidth = 2 * dot;
      ctx.beginPath();
      ctx.arc(x, y, 4.5 * dot, 0, 7);
      ctx.fill();
      ctx.stroke();
      if (this.curves.length > NAMED || x < bbox.left || x > bbox.left + bbox.width) return;
      const text = `${c.label} leaves`;
      const wide = ctx.measureText(text).width;
      const left = x + 8 * dot + wide > bbox.left + bbox.width ? x - 8 * dot - wide : x + 8 * dot;
      let top = Math.max(bbox.top + 12 * dot, y - 6 * dot);
      const covers = (n) => Math.abs(n.top - top) < 13 * dot && n.left < left + wide && left < n.left + n.wide;
      while (names.some(covers) && top < bbox.top + bbox.height) top += 13 * dot;
      names.push({ left, top, wide });
      ctx.lineWidth = 3 * dot;
      ctx.strokeStyle = css('--paper');
      ctx.strokeText(text, left, top);
      ctx.fillStyle = css(look(c.index).colour);
      ctx.fillText(text, left, top);
    });
    ctx.restore();
  }

  /** Draws the curve with this index in full and the others faintly; `null`: all in full. */
  emphasise(index) {
    this.emphasis = index;
    this.paint();
  }

  paint() {
    for (const { plot, pane } of this.plots) {
      pane.curves.forEach((c, i) => {
        plot.series[i + 1].alpha = this.emphasis === null || this.emphasis === c.index ? 1 : 0.15;
        plot.series[i + 1].width = this.emphasis === c.index ? 3 : 1.7;
      });
      plot.redraw(false);
    }
  }

  /** Says the values of all curves at a time of the axis. */
  read(x) {
    const t = x * this.unit();
    const name = this.how.times === 'rounds' ? 'round trips' : 's';
    const parts = [el('b', {}, `${short(x)} ${name}`)];
    for (const c of this.curves.slice(0, 12)) {
      const v = (column, pane) => short(at(c, column, t) / this.scale(pane, c));
      const amount = { amount: true };
      const unit = this.unitName(amount);
      const window = at(c, 'cwnd', t) > 0 ? `window ${v('cwnd', amount)} ${unit}, ` : '';
      parts.push(el('span', { class: 'reading' },
        el('i', { class: 'dot', style: `background: var(${look(c.index).colour})` }), ' ', el('b', {}, c.label), ': ',
        `${window}in flight ${v('inflight', amount)} ${unit}, RTT ${v('rtt', {})} ms`,
        c.queue ? `, queue ${v('queue', amount)} ${unit}` : '', c.recording ? '' : `, dropped ${short(at(c, 'lost', t))}`));
    }
    this.says.replaceChildren(...parts);
  }

  /** Shows a range of the time axis; `null`: all of it. */
  show(range) {
    const [low, high] = this.whole();
    if (range) {
      const width = Math.min(Math.max(range[1] - range[0], (high - low) / 1e5), high - low);
      const from = Math.min(Math.max(low, range[0]), high - width);
      this.range = width >= high - low ? null : [from, from + width];
    } else {
      this.range = null;
    }
    this.refresh();
    this.onrange?.(this.range);
  }

  zoom(factor, around) {
    const [from, to] = this.range ?? this.whole();
    const middle = around ?? (from + to) / 2;
    this.show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  pan(share) {
    const [from, to] = this.range ?? this.whole();
    const by = (to - from) * share;
    this.show([from + by, to + by]);
  }

  key(e, plot) {
    const [from, to] = this.range ?? this.whole();
    const step = (to - from) / 50;
    const move = (by) => {
      this.cursor = Math.min(to, Math.max(from, (this.cursor ?? from) + by));
      plot.setCursor({ left: plot.valToPos(this.cursor, 'x'), top: 10 });
      this.read(this.cursor);
    };
    const acts = {
      ArrowRight: () => (e.shiftKey ? this.pan(0.25) : move(step)),
      ArrowLeft: () => (e.shiftKey ? this.pan(-0.25) : move(-step)),
      '+': () => this.zoom(0.5, this.cursor),
      '=': () => this.zoom(0.5, this.cursor),
      '-': () => this.zoom(2, this.cursor),
      Home: () => this.show(null),
    };
    if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    acts[e.key]();
  }

  /** The name of the time axis. */
  timeName() {
    return this.how.times === 'rounds' ? 'time (round trips)' : 'time since the flow began (s)';
  }

  /** What is shown, as an SVG text. */
  svg(title) {
    const x = this.range ?? this.whole();
    const panes = this.plots.map(({ plot, pane }) => ({
      name: `${pane.name}${this.unitName(pane) ? ` (${this.unitName(pane)})` : ''}`,
      x,
      y: [plot.scales.y.min ?? 0, plot.scales.y.max ?? 1],
      log: this.isLog(pane),
      lines: pane.curves.map((c, i) => ({
        label: c.label,
        index: c.index,
        points: plot.data[0].map((t, k) => [t, plot.data[i + 1][k]]).filter(([, v]) => v !== null),
      })),
    }));
    return toSvg(title, panes, this.timeName());
  }
}
