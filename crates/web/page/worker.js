// Runs the simulator beside the page, so that the page never freezes. Each message has an `id`; answers have the same.

import init, { Task, analyse, catalogue, command, packets, toml } from './engine.js';

const ready = init();
/** The newest request of each kind: an older one of the same kind is abandoned. */
const newest = new Map();

/** Lets messages come in. */
const pause = () => new Promise((done) => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); });

const acts = {
  catalogue: () => JSON.parse(catalogue()),
  toml: ({ request }) => toml(request),
  command: ({ request }) => command(request),
  packets: ({ request, contender, run }) => JSON.parse(packets(request, contender, run)),
  analyse: ({ name, bytes, fork, base }) => JSON.parse(analyse(name, new Uint8Array(bytes), '[]', fork, base)),
  curves: ({ request, run, samples }) => {
    const task = new Task(request);
    try {
      const started = performance.now();
      const answer = JSON.parse(task.curves(run, samples));
      return { ...answer, ms: performance.now() - started };
    } finally {
      task.free();
    }
  },
  async study({ request, report, base }, { id, key }) {
    const task = new Task(request);
    try {
      const rows = [];
      const all = task.jobs();
      let told = performance.now();
      const started = told;
      for (;;) {
        const row = task.runNext();
        if (row === undefined) break;
        rows.push(row);
        if (performance.now() - told > 60) {
          told = performance.now();
          postMessage({ id, progress: [rows.length, all] });
          await pause();
          if (newest.get(key) !== id) return { stopped: true };
        }
      }
      const ms = performance.now() - started;
      return { rows, ms, summary: JSON.parse(task.summary()), report: report ? task.report(base) : null };
    } finally {
      task.free();
    }
  },
};

onmessage = async ({ data }) => {
  const { id, act, key } = data;
  if (act === 'stop') {
    newest.delete(key);
    return;
  }
  newest.set(key, id);
  try {
    await ready;
    await pause();
    if (newest.get(key) !== id) {
      postMessage({ id, answer: { stopped: true } });
      return;
    }
    postMessage({ id, answer: await acts[act](data, data) });
  } catch (e) {
    postMessage({ id, error: e instanceof Error ? e.message : String(e) });
  }
};
