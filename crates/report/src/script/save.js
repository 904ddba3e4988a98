// Saves what is shown: files, and pictures of the panes as SVG or PNG.

import { css, look, short } from './data.js';

/** Offers `content` as a file. */
export function save(name, type, content) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const text = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** Values for lines across an axis: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? power;
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) all.push(Number(v.toPrecision(12)));
  return all;
}

/** The panes as one SVG text. Each is { name, x: [low, high], y: [low, high], log, lines: [{ label, index, points }] }. */
export function toSvg(title, panes, xName) {
  const [width, height, left, right, top, bottom] = [900, 260, 70, 20, 40, 44];
  const paper = css('--paper') || '#fff';
  const [ink, soft, rule] = ['--ink', '--soft', '--rule'].map(css);
  const out = [];
  const labels = new Map();
  panes.forEach((pane, i) => {
    const y0 = 40 + i * height;
    const [xl, xh] = pane.x;
    const scale = pane.log ? Math.log10 : (v) => v;
    const [yl, yh] = pane.y.map(scale);
    const px = (x) => left + ((x - xl) / (xh - xl || 1)) * (width - left - right);
    const py = (y) => y0 + height - bottom - ((scale(y) - yl) / (yh - yl || 1)) * (height - top - bottom);
    out.push(`<text x="${left}" y="${y0 + 24}" font-weight="600" fill="${ink}">${text(pane.name)}</text>`);
    const ys = pane.log ? ticks(Math.ceil(yl), Math.floor(yh), 5).map((d) => 10 ** d) : ticks(yl, yh, 5);
    for (const v of ys) {
      out.push(`<path d="M${left} ${py(v).toFixed(1)}H${width - right}" stroke="${rule}"/>`,
        `<text x="${left - 6}" y="${(py(v) + 4).toFixed(1)}" text-anchor="end" fill="${soft}">${text(short(v))}</text>`);
    }
    for (const v of ticks(xl, xh, 8)) {
      out.push(`<text x="${px(v).toFixed(1)}" y="${y0 + height - bottom + 18}" text-anchor="middle" fill="${soft}">${text(short(v))}</text>`);
    }
    out.push(`<clipPath id="c${i}"><rect x="${left}" y="${y0 + top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath><g clip-path="url(#c${i})">`);
    for (const line of pane.lines) {
      const { colour, dash } = look(line.index);
      labels.set(line.index, line.label);
      // A logarithmic axis has no 0: the line ends before it and begins again behind it.
      let [d, pen] = ['', 'M'];
      for (const [x, y] of line.points) {
        if (!Number.isFinite(y)) continue;
        const shown = !pane.log || y > 0;
        if (shown) d += `${pen}${px(x).toFixed(1)} ${py(y).toFixed(1)}`;
        pen = shown ? 'L' : 'M';
      }
      if (d) out.push(`<path d="${d}" fill="none" stroke="${css(colour)}" stroke-width="1.8" stroke-dasharray="${dash.join(' ')}"/>`);
    }
    out.push('</g>');
  });
  const end = 40 + panes.length * height;
  out.push(`<text x="${width / 2}" y="${end + 4}" text-anchor="middle" fill="${soft}">${text(xName)}</text>`);
  let row = 0;
  for (const [index, label] of labels) {
    const { colour, dash } = look(index);
    const y = end + 28 + row * 18;
    out.push(`<path d="M${left} ${y - 4}h30" stroke="${css(colour)}" stroke-width="2.5" stroke-dasharray="${dash.join(' ')}"/>`,
      `<text x="${left + 38}" y="${y}" fill="${ink}">${text(label)}</text>`);
    row += 1;
  }
  const full = end + 36 + row * 18;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${full}" viewBox="0 0 ${width} ${full}" font-family="system-ui, sans-serif" font-size="12">` +
    `<rect width="100%" height="100%" fill="${paper}"/><text x="${left}" y="26" font-size="16" font-weight="600" fill="${ink}">${text(title)}</text>${out.join('')}</svg>`;
}

/** An SVG text as a PNG, at twice its size. */
export async function toPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error('The picture could not be made.'))), 'image/png');
  });
}
