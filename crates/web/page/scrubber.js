// Packets on the path at a moment: data above, ACKs below. Meant for slow paths.

import { css, el, short } from './data.js';

/** Draws the packets of one run. `which` gives the request and the run. */
export class Scrubber {
  constructor(engine, which) {
    this.engine = engine;
    this.which = which;
    this.isOpen = false;
    this.slider = el('input', { type: 'range', min: 0, max: 1, step: 'any', value: 0, 'aria-label': 'Time', class: 'wide' });
    this.slider.addEventListener('input', () => this.draw());
    this.says = el('p', { class: 'note', role: 'status' });
    this.canvas = el('canvas', { class: 'wire', role: 'img', 'aria-label': 'Packets on the path' });
    this.play = el('button', { type: 'button', onclick: () => this.toggle() }, 'Play');
    this.startup = el('select', { 'aria-label': 'Startup', onchange: () => this.load(this.labels, Number(this.startup.value)) });
    this.root = el('div', {},
      el('p', { class: 'note' }, 'Each mark is a packet: data goes to the right, ACKs come back below. Marks that wait at the bottleneck form a heap; a cross is a packet that is lost, a hollow mark one that is sent again. In slow start every ACK lets two packets go.'),
      el('div', { class: 'tools' }, this.startup, this.play, this.slider), this.canvas, this.says);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  async load(labels, contender = 0) {
    this.isOpen = true;
    this.labels = labels;
    const which = labels[contender] === undefined ? 0 : contender;
    this.startup.replaceChildren(...labels.map((l, i) => el('option', { value: i }, l)));
    this.startup.value = String(which);
    try {
      const { request, run } = this.which();
      const answer = await this.engine.ask('packets', { request, contender: which, run });
      if (answer.stopped) return;
      this.packets = answer;
      const ends = [...answer.data, ...answer.acks].map((p) => p.arrived ?? p.left);
      // As long as every packet is known.
      this.end = answer.cut ? Math.max(...answer.data.map((p) => p.left)) : ends.reduce((m, t) => Math.max(m, t), 1);
      this.slider.max = String(this.end);
      this.slider.value = String(this.lively());
      this.draw();
      this.root.dataset.packets = String(answer.data.length);
    } catch (e) {
      this.says.textContent = e.message;
    }
  }

  /** The moment of the first round trips at which most data is on the way. */
  lively() {
    const { data, base_rtt_us: rtt } = this.packets;
    let [best, most] = [0, -1];
    for (let t = 0; t <= Math.min(this.end, 5 * rtt); t += rtt / 20) {
      const n = data.reduce((sum, p) => sum + (p.left <= t && p.arrived !== null && p.arrived > t ? 1 : 0), 0);
      if (n > most) [best, most] = [t, n];
    }
    return best;
  }

  toggle() {
    this.playing = !this.playing;
    this.play.textContent = this.playing ? 'Pause' : 'Play';
    let last = null;
    const step = (now) => {
      if (!this.playing || !this.packets) return;
      // A base round trip takes two seconds.
      const by = last === null ? 0 : ((now - last) / 2000) * this.packets.base_rtt_us;
      last = now;
      const next = Number(this.slider.value) + by;
      this.slider.value = String(next >= this.end ? 0 : next);
      this.draw();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  draw() {
    const { canvas, packets } = this;
    const width = canvas.clientWidth;
    if (!packets || !width) return;
    const height = 150;
    const dot = devicePixelRatio;
    canvas.width = width * dot;
    canvas.height = height * dot;
    canvas.style.height = `${height}px`;
    const c = canvas.getContext('2d');
    c.scale(dot, dot);
    const now = Number(this.slider.value);
    const half = packets.base_rtt_us / 2;
    const [left, right] = [70, width - 70];
    const neck = left + (right - left) * 0.25;
    c.font = '13px system-ui, sans-serif';
    c.strokeStyle = css('--rule');
    for (const y of [60, 120]) { c.beginPath(); c.moveTo(left, y); c.lineTo(right, y); c.stroke(); }
    c.fillStyle = css('--ink');
    c.fillText('sender', 4, 94);
    c.fillText('receiver', right + 8, 94);
    c.fillStyle = css('--soft');
    c.fillText('bottleneck', neck - 30, 16);
    const [flight, waiting, lost] = [{ n: 0 }, { n: 0 }, { n: 0 }];
    const mark = (x, y, again, colour) => {
      c.fillStyle = css(colour);
      c.strokeStyle = css(colour);
      if (again) c.strokeRect(x - 2.5, y - 4, 5, 8);
      else c.fillRect(x - 2.5, y - 4, 5, 8);
    };
    for (const p of packets.data) {
      if (p.left > now) continue;
      if (p.arrived === null) {
        // Shown where it was lost for as long as a packet would have needed.
        if (now - p.left < half) {
          lost.n += 1;
          c.strokeStyle = css('--vermilion');
          c.lineWidth = 2;
          const y = 34 - (lost.n % 3) * 8;
          c.beginPath(); c.moveTo(neck - 4, y - 4); c.lineTo(neck + 4, y + 4); c.moveTo(neck + 4, y - 4); c.lineTo(neck - 4, y + 4); c.stroke();
          c.lineWidth = 1;
        }
        continue;
      }
      if (p.arrived <= now) continue;
      if (p.bytes) flight.n += 1;
      // It needs half a base round trip; whatever it took beyond that, it waited at the bottleneck.
      const wait = Math.max(0, p.arrived - p.left - half);
      const toNeck = half * 0.25;
      const since = now - p.left;
      let x;
      let y = 60;
      if (since < toNeck) x = left + (since / toNeck) * (neck - left);
      else if (since < toNeck + wait) {
        waiting.n += 1;
        x = neck - Math.floor((waiting.n - 1) / 5) * 7;
        y = 60 - ((waiting.n - 1) % 5) * 9;
      } else x = neck + Math.min(1, (since - toNeck - wait) / (half - toNeck)) * (right - neck);
      mark(x, y, p.again, p.again ? '--vermilion' : '--blue');
    }
    for (const p of packets.acks) {
      if (p.left > now || p.arrived === null || p.arrived <= now) continue;
      mark(right - ((now - p.left) / (p.arrived - p.left)) * (right - left), 120, false, '--green');
    }
    const text = `${(now / 1e6).toFixed(3)} s (round trip ${short(now / packets.base_rtt_us)}): ${flight.n} data packets on the way, ${waiting.n} of them waiting` +
      (lost.n ? `, ${lost.n} just lost` : '') + (packets.cut && now >= this.end * 0.999 ? '; later packets are not kept' : '');
    this.says.textContent = text;
    this.slider.setAttribute('aria-valuetext', text);
  }
}
