// A heat map: which startup is first at each place of two axes, or how far one is behind.

import { el, look, short } from './data.js';

/** Medians within this share of the best are a tie. */
const MARGIN = 0.03;

/** The share of its colour, in per cent, of a place whose first is `over` times as good as its second. */
function strength(over) {
  return Math.round(15 + 45 * Math.min(1, Math.max(0, (over - 1) * 2)));
}

/**
 * Draws `data` into a new element. `choices` makes the buttons that choose startups; `choice` and `field` make the fields of
 * the page.
 */
export function heatMap(data, { chips, choice, field }) {
  const root = el('div', { class: 'live' });
  const chosen = new Set(data.names);
  const indexOf = new Map(data.names.map((name, i) => [name, data.looks[i]]));
  const says = el('div', { class: 'readout', tabindex: 0, role: 'status', 'aria-live': 'polite' });
  const holder = el('div', { class: 'scroll', role: 'region', 'aria-label': 'Heat map', tabindex: 0 });
  let of = '';
  let narrow = '';
  const placeAt = new Map(data.places.map(([x, y, all]) => [`${x} ${y}`, all]));

  /** Whether a place has enough runs, and which startups do not complete there in every run. */
  const noteAt = new Map(data.places.map(([x, y, , decided, note]) => [`${x} ${y}`, [decided, note]]));
  const count = (lost) => (lost === null ? '?' : short(lost));

  /** How many times as good as a value the best is. */
  const behind = (value, best) => (data.more_is_better ? best / value : value / best);

  /** The chosen startups at a place, the best median first. */
  const ranked = (x, y) => (placeAt.get(`${x} ${y}`) ?? []).filter(([i]) => chosen.has(data.names[i]));

  const read = (x, y) => {
    const all = ranked(x, y);
    says.replaceChildren(el('b', {}, `${data.x} ${data.xs[x]}, ${data.y} ${data.ys[y]}`),
      ...all.slice(0, 12).map(([i, value, lost]) => el('span', { class: 'reading' },
        el('i', { class: 'dot', style: `background: var(${look(data.looks[i]).colour})` }), ' ', el('b', {}, data.names[i]),
        `: ${short(value)} (${short(value / all[0][1])} times that of the first), ${count(lost)} lost`)));
    const [decided, note] = noteAt.get(`${x} ${y}`) ?? [true, ''];
    if (!decided) says.append(' too few runs to decide');
    if (note) says.append(` ${note}`);
    if (!all.length) says.append(' no chosen startup has a value here');
  };

  const cell = (x, y) => {
    const all = ranked(x, y);
    const td = el('td', { tabindex: -1, 'data-x': x, 'data-y': y });
    const one = of === '' ? all[0] : all.find(([i]) => String(i) === of);
    if (!one) return td;
    const tied = all.filter(([, v]) => (data.more_is_better ? all[0][1] <= v * (1 + MARGIN) : v <= all[0][1] * (1 + MARGIN)));
    if (of === '' && tied.length > 1) {
      td.className = 'tie';
      td.append(`tie of ${tied.length}`, el('small', {}, tied.slice(0, 3).map(([j]) => data.names[j]).join(', ') + (tied.length > 3 ? ', ..' : '')));
      return td;
    }
    const [i, value, lost] = one;
    const over = of === '' ? (all[1] ? behind(all[1][1], value) : 9) : behind(value, all[0][1]);
    td.style.setProperty('--s', `${strength(over)}%`);
    td.className = of === '' ? `h${data.looks[i] % 12}` : 'h1';
    const ratio = of === '' && !all[1] ? '' : `${short(over)}x, `;
    const unsure = noteAt.get(`${x} ${y}`)[0] ? '' : ' ?';
    td.append(el('b', {}, (of === '' ? data.names[i] : `${short(over)}x`) + unsure), el('small', {}, of === '' ? `${ratio}${count(lost)} lost` : `${short(value)}, ${count(lost)} lost`));
    return td;
  };

  const draw = () => {
    const shownX = data.xs.map((_, x) => x);
    const shownY = data.ys.map((_, y) => y).filter((y) => narrow === '' || String(y) === narrow);
    holder.replaceChildren(el('table', { class: 'heat', 'data-plain': '' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, `${data.y} \\ ${data.x}`), ...shownX.map((x) => el('th', { scope: 'col' }, data.xs[x])))),
      el('tbody', {}, ...shownY.map((y) => el('tr', {}, el('th', { scope: 'row' }, data.ys[y]), ...shownX.map((x) => cell(x, y)))))));
    const first = holder.querySelector('td');
    if (first) first.tabIndex = 0;
  };

  const at = (target) => target.closest?.('td[data-x]');
  for (const on of ['mouseover', 'focusin']) {
    holder.addEventListener(on, (e) => {
      const td = at(e.target);
      if (td) read(Number(td.dataset.x), Number(td.dataset.y));
    });
  }
  holder.addEventListener('keydown', (e) => {
    const td = at(e.target);
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (!td || !step) return;
    e.preventDefault();
    const next = holder.querySelector(`td[data-x="${Number(td.dataset.x) + step[0]}"][data-y="${Number(td.dataset.y) + step[1]}"]`);
    if (!next) return;
    td.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const options = [['', 'which is first'], ...data.names.map((n, i) => [String(i), `${n} behind the first`])];
  root.append(
    el('div', { class: 'tools', role: 'group', 'aria-label': 'What is drawn' },
      field('Show', choice(options, (v) => { of = v; draw(); })),
      data.ys.length > 1 ? field(data.y, choice([['', 'all'], ...data.ys.map((y, i) => [String(i), y])], (v) => { narrow = v; draw(); })) : null),
    chips(data.names, chosen, indexOf, draw, () => {}),
    says, holder,
    el('p', { class: 'note' }, 'Point at a place, or move between places with the arrow keys, to read the values of all chosen startups.'));
  draw();
  return root;
}
