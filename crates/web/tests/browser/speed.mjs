// Speed of the simulator in a browser beside the command, and the cost of a redraw and of a large report, in CPU time of the threads that do it,
// so that other work on the machine does not count. Environment: PLAYGROUND, its folder; SLOWSTART, the command. Linux only.
//
// Usage: node speed.mjs

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { open, serve } from './browser.mjs';

const { PLAYGROUND, SLOWSTART } = process.env;
const TICK = 10;

/** CPU milliseconds so far of the threads of the browser whose names match: workers, or the main threads of pages. */
function cpu(pattern) {
  let sum = 0;
  for (const pid of readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')) continue;
      for (const task of readdirSync(`/proc/${pid}/task`)) {
        const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8');
        const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
        if (!pattern.test(name)) continue;
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        sum += (Number(fields[11]) + Number(fields[12])) * TICK;
      }
    } catch {
      // The process or thread has ended.
    }
  }
  return sum;
}

const server = await serve(PLAYGROUND);
const browser = await open({ viewport: { width: 1400, height: 1000 } });
const page = await browser.context.newPage();
await page.goto(`${server.address}#size=100kB`);
await page.waitForSelector('#app[data-ready]', { timeout: 60_000 });

/** Runs a study in a new worker and returns its rows. */
const study = (request) => page.evaluate((text) => new Promise((done, failed) => {
  globalThis.speed ??= new Worker('worker.js', { type: 'module' });
  globalThis.speed.onmessage = ({ data }) => { if (data.error) failed(new Error(data.error)); else if (data.answer) done(data.answer.rows); };
  globalThis.speed.postMessage({ id: 1, act: 'study', key: 'study', request: text });
}), JSON.stringify(request));

const request = { path: 'rate=50Mbit rtt=100ms queue=1bdp', startups: ['standard', 'search'], size: '300MB', runs: 10 };
await study({ ...request, size: '20MB' });
const before = cpu(/Worker/);
const rows = await study(request);
const inBrowser = cpu(/Worker/) - before;
const packets = rows.map((r) => JSON.parse(r).cost.packets).reduce((a, b) => a + b, 0);
const line = `"$0" compare '${request.path}' --startup standard,search --size 300MB --runs 10 --json -j 1 > /dev/null; times`;
const out = execFileSync('sh', ['-c', line, SLOWSTART], { encoding: 'utf8' }).trim().split('\n')[1];
const seconds = (text) => { const [, m, s] = /(\d+)m([\d.]+)s/.exec(text); return Number(m) * 60 + Number(s); };
const native = out.split(' ').map(seconds).reduce((a, b) => a + b, 0) * 1000;
const rate = (ms) => `${(packets / ms / 1000).toFixed(2)} million packets/s`;
console.log(`${packets} packets: in the browser ${inBrowser} ms (${rate(inBrowser)}), native ${native.toFixed(0)} ms (${rate(native)}), ratio ${(native / inBrowser).toFixed(2)}`);

// Redraws: a slider is moved in small steps.
for (const [name, hash] of [['50 Mbit/s, 100 ms', '#path=rate%3D50Mbit+rtt%3D100ms+queue%3D1bdp&startups=standard,search'], ['geo', '#path=geo&startups=standard,search']]) {
  const p = await browser.context.newPage();
  await p.goto(server.address + hash);
  await p.waitForSelector('#app[data-ready]', { timeout: 60_000 });
  const [main, worker] = [cpu(/^(chrom|CrRenderer)/), cpu(/Worker/)];
  const times = 10;
  for (let i = 1; i <= times; i += 1) {
    const drawn = Number(await p.locator('.version').getAttribute('data-drawn'));
    if (name === 'geo') {
      await p.locator('label', { hasText: /^Run/ }).locator('input').first().fill(String(i));
      await p.locator('label', { hasText: /^Run/ }).locator('input').first().blur();
    } else {
      await p.locator('input[data-key=queue]').evaluate((s, v) => { s.value = v; s.dispatchEvent(new Event('input', { bubbles: true })); }, Math.log(1 + i / 100));
    }
    await p.waitForFunction((n) => Number(document.querySelector('.version').dataset.drawn) > n, drawn);
  }
  console.log(`${name}: a redraw takes ${((cpu(/Worker/) - worker) / times).toFixed(0)} ms of the worker and ${((cpu(/^(chrom|CrRenderer)/) - main) / times).toFixed(0)} ms of the page; ${await p.textContent('.speed')}`);
  await p.close();
}

// The report of all startups with ten runs of each.
const folder = mkdtempSync(path.join(tmpdir(), 'slowstart-speed-'));
execFileSync(SLOWSTART, ['compare', 'geo', '--runs', '10', '--out', path.join(folder, 'out')], { stdio: 'ignore' });
const file = path.join(folder, 'out', 'report.html');
for (let i = 0; i < 3; i += 1) {
  const p = await browser.context.newPage();
  const before = cpu(/^(chrom|CrRenderer)/);
  await p.goto(`file://${file}`);
  await p.waitForSelector('.live[data-ready]');
  const wall = await p.evaluate(() => performance.now());
  console.log(`report of geo: ${(statSync(file).size / 1e6).toFixed(2)} MB, read and drawn in ${cpu(/^(chrom|CrRenderer)/) - before} ms of CPU time, at most ${wall.toFixed(0)} ms after its address was entered`);
  await p.close();
}
rmSync(folder, { recursive: true });
await browser.close();
server.close();
