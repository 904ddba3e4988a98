// The playground in a real browser. Environment: PLAYGROUND, its folder; SLOWSTART, the command; REPORT, a report of it.

import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { errorsOf, open, serve } from './browser.mjs';

const { PLAYGROUND, SLOWSTART, ROOT } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const folder = mkdtempSync(path.join(tmpdir(), 'slowstart-tests-'));
const server = await serve(PLAYGROUND);
const browser = await open({ viewport: { width: 1400, height: 1000 } });
test.after(async () => { await browser.close(); server.close(); });

/** The output of the command. */
const run = (...args) => execFileSync(SLOWSTART, args, { encoding: 'utf8', cwd: ROOT, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
/** The playground with these settings, drawn. */
async function page(hash, context = browser.context) {
  const p = await context.newPage();
  const errors = errorsOf(p);
  await p.goto(server.address + hash);
  await p.waitForSelector('#app[data-ready]', { timeout: 60_000 });
  return { p, errors };
}
/** What axe-core finds that is serious or worse. */
async function serious(p) {
  await p.evaluate(axe);
  const found = await p.evaluate(() => globalThis.axe.run(document));
  return found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`);
}
const drawn = (p) => p.locator('.version').first().getAttribute('data-drawn').then(Number);

test('a dragged slider changes the answer', async () => {
  const { p, errors } = await page('#size=2MB');
  const before = await p.locator('.verdict').first().textContent();
  const slider = p.locator('input[type=range][data-key=queue]');
  const box = await slider.boundingBox();
  await p.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await p.mouse.down();
  for (let i = 1; i <= 8; i += 1) await p.mouse.move(box.x + box.width * (0.5 - 0.05 * i), box.y + box.height / 2);
  await p.mouse.up();
  await p.waitForFunction((b) => document.querySelector('.verdict').textContent !== b, before, { timeout: 60_000 });
  assert.match(await p.evaluate(() => location.hash), /queue=0\.\d+bdp/);
  assert.ok(await drawn(p) >= 2);
  assert.deepEqual(errors, []);
  await p.close();
});

/** Ten studies: an ensemble, disciplines, losses, other flows, applications, stacks, a controller of its own. */
/** The rows that the command prints, without its commit, which the playground does not know. */
const printed = (...args) => run(...args, '--json').replaceAll(/"commit":"[^"]*"/g, '"commit":null');

const STUDIES = [
  { path: 'rate=50Mbit rtt=100ms queue=1bdp', startups: ['standard', 'search'], runs: 2 },
  { path: 'leo', startups: ['standard', 'hystart'], runs: 2, size: '2MB' },
  { path: 'geo', startups: ['search', 'suss'], runs: 2, size: '2MB' },
  { path: 'lte', startups: ['bbr', 'bbr3'], runs: 1, size: '2MB' },
  { path: 'rate=20Mbit rtt=40ms queue="codel ecn"', startups: ['hystart:detect=delay'], runs: 2, size: '2MB', set: { ecn: 'rfc3168' } },
  { path: 'rate=20Mbit rtt=40ms queue=2bdp loss=0.5% jitter=3ms', startups: ['vegas', 'ess'], runs: 3, size: '1MB' },
  { path: 'wifi-weak', startups: ['rapid-start', 'jump-start'], runs: 2, size: '1MB', seed: 7 },
  { path: 'dsl', startups: ['standard'], runs: 2, against: ['cubic@-3s'], size: '1MB' },
  { path: 'rate=10Mbit rtt=60ms', startups: ['standard', 'halfback'], runs: 2, app: 'web', duration: '5s' },
  { path: 'geo-pep', startups: ['standard', 'hybla'], runs: 1, size: '1MB', avoidance: 'reno' },
];

test('the rows of ten studies are those of the command line, to the byte', async () => {
  const { p, errors } = await page('#size=1MB');
  for (const study of STUDIES) {
    const answer = await p.evaluate(async (request) => {
      const worker = new Worker('worker.js', { type: 'module' });
      const ask = (act, id) => new Promise((done, failed) => {
        worker.onmessage = ({ data }) => { if (data.error) failed(new Error(data.error)); else if (data.answer !== undefined) done(data.answer); };
        worker.postMessage({ id, act, key: act, request });
      });
      const { rows } = await ask('study', 1);
      const command = await ask('command', 2);
      worker.terminate();
      return { rows, command };
    }, JSON.stringify(study));
    const words = execFileSync('sh', ['-c', `slowstart() { printf '%s\\0' "$@"; }; ${answer.command}`], { encoding: 'utf8' }).split('\0').slice(0, -1);
    assert.equal(answer.rows.map((r) => `${r}\n`).join(''), printed(...words), answer.command);
  }
  assert.deepEqual(errors, []);
  await p.close();
});

test('a dropped capture gives the answer of slowstart replay', async () => {
  const { p, errors } = await page('#size=1MB');
  const file = 'scenarios/captures/download.pcapng.gz';
  const name = path.basename(file);
  const analysed = async () => {
    await p.locator('.analysis').evaluate((a) => { delete a.dataset.rows; });
    await p.setInputFiles('#file', []);
    await p.setInputFiles('#file', path.join(ROOT, file));
    await p.waitForSelector('.analysis[data-rows]', { timeout: 60_000, state: 'attached' });
    return p.locator('.analysis').getAttribute('data-rows');
  };
  const expected = (...args) => run('replay', file, '--json', ...args).replaceAll(`"file":"${file}"`, `"file":"${name}"`);
  // With the continuation in the simulator, which is chosen at first, and without.
  assert.equal(await analysed(), expected('--fork'));
  assert.ok(await p.locator('.forked tbody tr').count() > 20);
  const report = p.frameLocator('iframe.report').first();
  await report.locator('.live[data-ready]').waitFor({ timeout: 60_000 });
  assert.match(await report.locator('.about a').getAttribute('href'), /#path=rate=.*&startups=standard/);
  await p.locator('#fork').uncheck();
  assert.equal(await analysed(), expected());
  assert.equal(await p.locator('.forked').count(), 0);
  assert.deepEqual(errors, []);
  await p.close();
});

test('a dropped Mahimahi trace is the path, and the link holds it', async () => {
  const { p, errors } = await page('#size=1MB');
  const trace = path.join(ROOT, 'docs/samples/example.down');
  const short = path.join(folder, 'short.down');
  writeFileSync(short, readFileSync(trace, 'utf8').split('\n').slice(0, 400).join('\n'));
  await p.setInputFiles('#file', short);
  await p.waitForFunction(() => document.querySelector('[data-key=path]').value.includes('trace=short.down'));
  await p.waitForFunction(() => document.querySelector('.answer').textContent.includes('trace=short.down'), null, { timeout: 60_000 });
  await p.waitForFunction(() => location.hash.includes('file.short.down'));
  const { p: other, errors: none } = await page(await p.evaluate(() => location.hash));
  assert.equal(await other.locator('.verdict').first().textContent(), await p.locator('.verdict').first().textContent());
  assert.deepEqual([...errors, ...none], []);
  await p.close();
  await other.close();
});

test('a link shows the same picture in a fresh profile', async () => {
  const hash = '#path=rate%3D8Mbit+rtt%3D60ms+queue%3D1bdp&startups=standard,hystart,search&size=2MB&b.path=dsl&b.startups=bbr&b.size=1MB&show.log=log';
  const { p, errors } = await page(hash);
  const fresh = await open({ viewport: { width: 1400, height: 1000 } });
  const { p: other, errors: none } = await page(await p.evaluate(() => location.hash), fresh.context);
  const picture = (q) => q.evaluate(() => [...document.querySelectorAll('.version')].map((v) => [
    v.querySelector('.verdict').textContent, v.querySelector('.results').innerText,
    ...[...v.querySelectorAll('.uplot canvas')].map((c) => c.toDataURL())]));
  assert.deepEqual(await picture(p), await picture(other));
  assert.equal((await picture(p)).length, 2);
  assert.deepEqual([...errors, ...none], []);
  await fresh.close();
  await p.close();
});

test('all runs, packets, and downloads', async () => {
  const { p, errors } = await page('#path=rate%3D2Mbit+rtt%3D200ms+queue%3D1bdp&size=200kB&runs=3');
  await p.getByRole('button', { name: 'Make all runs' }).click();
  await p.waitForSelector('.many[data-runs="6"]', { timeout: 60_000 });
  await p.locator('.scrubbing summary').click();
  await p.waitForSelector('[data-packets]', { timeout: 60_000 });
  const packets = Number(await p.locator('[data-packets]').getAttribute('data-packets'));
  assert.ok(packets > 140, `${packets} packets carry 200 kB`);
  const text = async (name) => {
    const [download] = await Promise.all([p.waitForEvent('download'), p.getByRole('button', { name, exact: true }).click()]);
    const file = path.join(folder, download.suggestedFilename());
    await download.saveAs(file);
    return file;
  };
  const toml = await text('Study (TOML)');
  const rows = readFileSync(await text('Rows'), 'utf8');
  assert.equal(rows, printed('run', toml));
  assert.match(readFileSync(await text('SVG'), 'utf8'), /^<svg .*standard.*hystart.*<\/svg>$/s);
  assert.deepEqual([...readFileSync(await text('PNG')).subarray(1, 4)], [...Buffer.from('PNG')]);
  assert.match(readFileSync(await text('Report'), 'utf8'), /^<!DOCTYPE html>.*<\/html>$/s);
  assert.deepEqual(errors, []);
  await p.close();
});

test('what is wrong is said in a sentence, and a name is text', async () => {
  const { p, errors } = await page(`#${new URLSearchParams({ path: 'rate=5Mbit rtt=20ms name="<img src=x onerror=boom()>"', size: '100kB' })}`);
  assert.match(await p.locator('.answer').first().textContent(), /<img src=x/);
  assert.equal(await p.locator('img').count(), 0);
  await p.locator('[data-key=path]').fill('rate=5Mbit rtt=<script>alert(1)</script>');
  await p.locator('[data-key=path]').press('Enter');
  await p.waitForFunction(() => document.querySelector('.refused').textContent.includes('expected'));
  const large = path.join(folder, 'large.pcap');
  writeFileSync(large, Buffer.alloc(101e6));
  await p.setInputFiles('#file', large);
  await p.waitForFunction(() => document.querySelector('.analysis').textContent.includes('at most 100 MB'));
  assert.deepEqual(errors, []);
  await p.close();
});

/** What is wider than the screen on a phone and at 200 % zoom; `within` may be, as it scrolls by itself. */
async function wider(p, within = '.none') {
  const all = [];
  for (const width of [390, 700]) {
    await p.setViewportSize({ width, height: 800 });
    await p.waitForTimeout(200);
    all.push(...await p.evaluate((scrolls) => {
      const page = document.documentElement;
      const found = page.scrollWidth > page.clientWidth ? [`the page by ${page.scrollWidth - page.clientWidth}`] : [];
      for (const e of document.body.querySelectorAll('*')) {
        // Parts of a picture are clipped at its edge.
        if (e.closest(scrolls) || e.ownerSVGElement || e.closest('.u-over, .u-under, .u-axis')) continue;
        const box = e.getBoundingClientRect();
        if (box.width > 0 && box.right > page.clientWidth + 1) found.push(`${e.tagName} ${e.className} ends at ${Math.round(box.right)}`);
      }
      return found.slice(0, 5);
    }, within));
  }
  return all;
}

test('axe-core finds nothing serious on the playground, light and dark, and it fits a phone', async () => {
  const { p } = await page('#size=1MB&show.view=packets&path=rate%3D2Mbit+rtt%3D100ms+queue%3D1bdp');
  await p.waitForSelector('[data-packets]', { timeout: 60_000 });
  assert.deepEqual(await serious(p), []);
  await p.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await serious(p), []);
  assert.deepEqual(await wider(p), []);
  await p.close();
});

/** A report of the command line, in a folder of its own. */
const evil = '<script>globalThis.hacked=1</script>';
const out = path.join(folder, 'out');
run('compare', `rate=8Mbit rtt=60ms queue=1bdp name="${evil}"`, '--startup', 'standard,hystart,search', '--size', '1MB', '--runs', '3', '--out', out);
const reportFile = path.join(out, 'report.html');

async function report(file, context = browser.context) {
  const p = await context.newPage();
  const errors = errorsOf(p);
  await p.goto(`file://${file}`);
  return { p, errors };
}

test('the report draws, chooses, zooms, reads, sorts and filters; names are text', async () => {
  const { p, errors } = await report(reportFile);
  await p.waitForSelector('.live[data-ready]', { timeout: 60_000 });
  assert.equal(await p.evaluate(() => globalThis.hacked), undefined);
  assert.match(await p.locator('h1').textContent(), /<script>/);
  const canvas = () => p.evaluate(() => document.querySelector('.uplot canvas').toDataURL());
  const whole = await canvas();
  await p.getByRole('button', { name: 'Zoom in' }).click();
  assert.notEqual(await canvas(), whole);
  await p.getByRole('button', { name: 'Whole time' }).click();
  await p.getByRole('button', { name: 'hystart', exact: true }).click();
  await p.mouse.move(0, 0);
  const without = await canvas();
  assert.notEqual(without, whole);
  await p.locator('label:has-text("path of") select').selectOption('2');
  assert.equal(await p.locator('label:has-text("path of") option').count(), 3, 'one run for all startups');
  await p.locator('label:has-text("Amounts") select').selectOption('bytes');
  assert.match(await p.locator('.pane h3').first().textContent(), /MB/);
  await p.locator('.live > .tools label', { hasText: /^Time/ }).locator('select').selectOption('rounds');
  await p.locator('label:has-text("Scale") select').selectOption('log');
  assert.notEqual(await canvas(), without);
  await p.locator('.pane').first().focus();
  for (let i = 0; i < 5; i += 1) await p.keyboard.press('ArrowRight');
  assert.match(await p.locator('.readout').textContent(), /round trips.*standard.*window/s);
  // Without the star of those that nothing beats.
  const first = async () => (await p.locator('tbody tr th').first().textContent()).replace(/ ★$/, '');
  await p.locator('th button.sort').first().click();
  assert.equal(await first(), 'hystart');
  await p.locator('th button.sort').first().click();
  assert.notEqual(await first(), 'hystart');
  assert.ok(await p.locator('.strips circle').count() === 9);
  assert.deepEqual(await serious(p), []);
  await p.emulateMedia({ colorScheme: 'dark' });
  assert.deepEqual(await serious(p), []);
  assert.deepEqual(await wider(p), []);
  assert.deepEqual(errors, []);
  await p.close();
});

test('the link of a report shows the same study in the playground', async () => {
  const named = path.join(folder, 'named');
  run('compare', 'rate=8Mbit rtt=60ms queue=1bdp', '--startup', 'standard,hystart', '--size', '1MB', '--runs', '2', '--seed', '5', '--out', named);
  const { p, errors } = await report(path.join(named, 'report.html'));
  const address = new URL(await p.locator('.about a').getAttribute('href'));
  await p.close();
  const { p: q, errors: none } = await page(address.hash);
  await q.waitForFunction(() => document.getElementById('command').textContent !== '');
  assert.equal(await q.locator('#command').textContent(),
    "slowstart compare 'rate=8Mbit rtt=60ms queue=1bdp' --startup standard,hystart --size 1000000B --runs 2 --seed 5");
  // A path with a name of its own has no address that makes the same rows.
  assert.equal(readFileSync(reportFile, 'utf8').includes('in the playground'), false);
  assert.deepEqual([...errors, ...none], []);
  await q.close();
});

test('an experiment of a paper has the same charts as a study, more quantities, and tables to sort', async () => {
  const papers = path.join(folder, 'papers');
  run('reproduce', 'ess/fig7', '--out', papers);
  const { p, errors } = await report(path.join(papers, readdirSync(papers).find((f) => f.endsWith('.html'))));
  await p.waitForSelector('.group .live[data-ready]', { timeout: 60_000 });
  assert.equal(await p.locator('.fixed svg:visible').count(), 0);
  const group = p.locator('.group').first();
  await group.locator('.chip').first().click();
  await group.getByRole('button', { name: 'Zoom in' }).click();
  await group.locator('.pane').first().focus();
  await p.keyboard.press('ArrowRight');
  assert.match(await group.locator('.readout').textContent(), /in flight/);
  assert.ok(await p.locator('th button.sort').count() > 3);
  assert.deepEqual(await serious(p), []);
  assert.deepEqual(errors, []);
  await p.close();
});

test('the map of a sweep is questioned: fewer startups, one startup, and what a place holds', async () => {
  const [study, store, map] = ['sweep.toml', 'store', 'map.html'].map((f) => path.join(folder, f));
  writeFileSync(study, 'path = "rate=1Mbit rtt=20ms"\nstartups = ["standard", "jump-start", "rapid-start"]\nsize = "300kB"\nruns = 6\n[axes]\nrate = "10,50Mbit"\nrtt = "20,80ms"\n');
  run('sweep', study, '--out', store);
  run('sweep', 'map', store, '--x', 'rate', '--y', 'rtt', '--html', map);
  const { p, errors } = await report(map);
  await p.waitForSelector('.live[data-ready]', { timeout: 60_000 });
  const cells = () => p.locator('.live .heat td').allTextContents();
  const all = await cells();
  assert.equal(all.length, 4);
  await p.locator('.live .heat td').first().focus();
  await p.keyboard.press('ArrowRight');
  await p.keyboard.press('ArrowDown');
  assert.match(await p.locator('.live .readout').textContent(), /rate .*, rtt .*standard.*times that of the first.*lost/s);
  const first = await p.locator('.live .heat td b').first().textContent();
  await p.locator('.live .chip', { hasText: first }).click();
  assert.notEqual(await p.locator('.live .heat td b').first().textContent(), first);
  await p.getByLabel('Show').selectOption({ index: 1 });
  assert.match((await cells()).join(' '), /\dx/);
  assert.deepEqual(await serious(p), []);
  assert.deepEqual(errors, []);
  assert.deepEqual(await wider(p, '.scroll table'), []);
  await p.emulateMedia({ media: 'print' });
  assert.equal(await p.locator('.fixed .heat:visible').count(), 1);
  await p.close();
});

test('other pages fit a phone: a recorded connection, the league', async () => {
  const dir = path.join(folder, 'pages');
  run('replay', 'scenarios/captures/download.pcapng.gz', '--out', path.join(dir, 'replay'));
  run('league', 'standard,search', '--runs', '1', '--population', 'geo', '--out', path.join(dir, 'league'));
  const files = readdirSync(dir, { recursive: true }).filter((f) => f.endsWith('.html'));
  assert.equal(files.length, 2, files.join());
  for (const file of files) {
    const { p, errors } = await report(path.join(dir, file));
    await p.waitForTimeout(500);
    assert.deepEqual(await wider(p, '.scroll table'), [], file);
    assert.deepEqual(await serious(p), [], file);
    await p.emulateMedia({ colorScheme: 'dark' });
    assert.deepEqual(await serious(p), [], file);
    assert.deepEqual(errors, [], file);
    await p.close();
  }
});

test('all startups with ten runs of each make a page below 3 MB', async () => {
  const all = path.join(folder, 'all');
  run('compare', 'rate=20Mbit rtt=40ms queue=1bdp jitter=2ms', '--all', '--size', '400kB', '--runs', '10', '--out', all);
  const file = path.join(all, 'report.html');
  const bytes = statSync(file).size;
  assert.ok(bytes < 3e6, `${bytes} bytes`);
  const { p, errors } = await report(file);
  await p.waitForSelector('.live[data-ready]', { timeout: 60_000 });
  assert.ok(await p.locator('.live .chip').count() >= 33);
  await p.getByRole('button', { name: 'all', exact: true }).click();
  assert.deepEqual(errors, []);
  await p.close();
});

test('without a script and in print the report has its fixed charts', async () => {
  const plain = await open({ javaScriptEnabled: false });
  const { p } = await report(reportFile, plain.context);
  assert.equal(await p.locator('.fixed svg:visible').count(), 5);
  await plain.close();
  const { p: q } = await report(reportFile);
  await q.waitForSelector('.live[data-ready]');
  assert.equal(await q.locator('.fixed svg:visible').count(), 0);
  await q.emulateMedia({ media: 'print' });
  assert.equal(await q.locator('.fixed svg:visible').count(), 5);
  assert.equal(await q.locator('.live:visible').count(), 0);
  await q.close();
});

test('a page of a hundred megabytes of samples is refused with a sentence', async () => {
  const data = gzipSync(Buffer.alloc(100e6, '1,')).toString('base64');
  const huge = path.join(folder, 'huge.html');
  writeFileSync(huge, readFileSync(reportFile, 'utf8').replace(/(type="application\/gzip">)[^<]*/, (_, start) => start + data));
  const { p, errors } = await report(huge);
  await p.waitForSelector('.refused', { timeout: 60_000 });
  assert.match(await p.locator('.refused').textContent(), /more than 64 MB of samples/);
  assert.equal(await p.locator('.fixed svg:visible').count(), 5);
  assert.deepEqual(errors, []);
  await p.close();
});
