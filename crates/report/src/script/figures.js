// Figures of lines whose first axis is not time: each is drawn anew with choice, zoom and a cursor that reads values.

import { css, el, look, short, tickTexts } from './data.js';
import { save, toPng, toSvg } from './save.js';

/** The values of all lines at or before `x`. */
function values(figure, x) {
  return figure.lines.map(({ x: xs, y: ys }) => {
    let found = null;
    for (let i = 0; i < xs.length && xs[i] <= x; i += 1) found = ys[i];
    return found;
  });
}

/** Draws one figure and returns its element. */
function drawFigure(figure, { chips }) {
  const root = el('div', { class: 'pane figure' }, el('h3', {}, figure.title));
  const labels = figure.lines.map((l) => l.label);
  const indexOf = new Map(labels.map((l, i) => [l, i]));
  const chosen = new Set(labels);
  const says = el('div', { class: 'readout', tabindex: 0, role: 'status', 'aria-live': 'polite' });
  const box = el('div', { class: 'holder', tabindex: 0, role: 'application', 'aria-roledescription': 'chart',
    'aria-label': `${figure.title}: ${figure.y.name} over ${figure.x.name}. Arrow keys move the cursor, plus and minus zoom, Home shows all.` });
  const all = figure.lines.flatMap((l) => l.x.filter((v) => !figure.x.log || v > 0));
  const whole = [Math.min(...all), Math.max(...all)];
  let range = null;
  let cursor = null;
  let plot = null;
  const scale = figure.x.log ? Math.log : (v) => v;
  const back = figure.x.log ? Math.exp : (v) => v;

  const show = (next) => {
    range = next && next[0] < next[1] ? [Math.max(whole[0], next[0]), Math.min(whole[1], next[1])] : null;
    plot.setScale('x', { min: (range ?? whole)[0], max: (range ?? whole)[1] });
  };
  const zoom = (factor) => {
    const [low, high] = (range ?? whole).map(scale);
    const middle = cursor === null ? (low + high) / 2 : scale(cursor);
    show([back(middle - (middle - low) * factor), back(middle + (high - middle) * factor)]);
  };
  const read = (x) => {
    const at = values(figure, x);
    says.replaceChildren(el('b', {}, `${figure.x.name} ${short(x)}`), ...labels.map((label, i) => (chosen.has(label) && at[i] !== null
      ? el('span', { class: 'reading' }, el('i', { class: 'dot', style: `background: var(${look(i).colour})` }), ' ', el('b', {}, label), `: ${short(at[i])}`) : null)).filter(Boolean));
  };
  const build = () => {
    plot?.destroy();
    const shown = figure.lines.filter((l) => chosen.has(l.label));
    const [ink, rule] = [css('--soft'), css('--rule')];
    const axis = { stroke: ink, font: '12px system-ui, sans-serif', grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
    const text = (log) => (u, ticks) => (log ? ticks.map((v) => (v === null ? '' : short(v))) : tickTexts(ticks));
    plot = new uPlot({
      width: Math.max(240, Math.floor(box.clientWidth || 600)),
      height: 300,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false } },
      scales: {
        x: { time: false, distr: figure.x.log ? 3 : 1, range: (u, low, high) => [low, high] },
        y: { distr: figure.y.log ? 3 : 1 },
      },
      axes: [{ ...axis, label: figure.x.name, space: 60, values: text(figure.x.log) }, { ...axis, label: figure.y.name, size: 62, values: text(figure.y.log) }],
      series: [{}, ...shown.map((l) => {
        const { colour, dash } = look(indexOf.get(l.label));
        return { label: l.label, stroke: css(colour), width: 1.7, dash, spanGaps: true, points: { show: false } };
      })],
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const next = [u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x')];
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          show(next);
        }],
        setCursor: [(u) => { if (u.cursor.left >= 0) read(u.posToVal(u.cursor.left, 'x')); }],
      },
    }, shown.length ? uPlot.join(shown.map((l) => [l.x, l.y])) : [[], []], box);
    show(range);
    plot.over.addEventListener('dblclick', () => show(null));
  };
  box.addEventListener('keydown', (e) => {
    const [low, high] = (range ?? whole).map(scale);
    const move = (by) => {
      cursor = back(Math.min(high, Math.max(low, (cursor === null ? low : scale(cursor)) + by * (high - low) / 50)));
      plot.setCursor({ left: plot.valToPos(cursor, 'x'), top: 10 });
      read(cursor);
    };
    const act = { ArrowRight: () => move(1), ArrowLeft: () => move(-1), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), Home: () => show(null) }[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act();
  });
  const svg = () => toSvg(document.title, [{
    name: `${figure.title}: ${figure.y.name}`,
    x: (range ?? whole).map(scale),
    y: [plot.scales.y.min, plot.scales.y.max],
    log: figure.y.log,
    lines: figure.lines.filter((l) => chosen.has(l.label)).map((l) => ({ label: l.label, index: indexOf.get(l.label), points: l.x.map((x, i) => [scale(x), l.y[i]]) })),
  }], figure.x.log ? `${figure.x.name}, natural logarithm` : figure.x.name);
  const button = (name, title, onclick) => el('button', { type: 'button', title, 'aria-label': title, onclick }, name);
  root.append(el('div', { class: 'tools' }, button('+', 'Zoom in', () => zoom(0.5)), button('−', 'Zoom out', () => zoom(2)), button('All', 'Show all', () => show(null)),
    button('SVG', 'SVG', () => save('slowstart.svg', 'image/svg+xml', svg())),
    button('PNG', 'PNG', async () => save('slowstart.png', 'image/png', await toPng(svg())))),
  chips(labels, chosen, indexOf, build, () => {}), says, box);
  return { root, build };
}

/** Draws all figures of `data` into a new element; `ready` must be called when it is on the page. */
export function figures(data, tools) {
  const all = data.figures.map((f) => drawFigure(f, tools));
  const root = el('div', { class: 'live' }, ...all.map((f) => f.root));
  return { root, ready: () => all.forEach((f) => f.build()) };
}
