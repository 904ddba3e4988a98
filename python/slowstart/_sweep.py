"""Sweeps on this machine or on a Dask cluster."""

from __future__ import annotations

import time
from os import PathLike, fspath
from typing import Any

from ._slowstart import Sweep

#: Seconds that a task is meant to take.
_TASK = 1.0
#: Tasks in flight for each thread of the workers, so that none waits for the next.
_AHEAD = 3

# The sweep that this process, a worker, has read last.
_read: dict[str, Sweep] = {}


def _work(text: str, root: str | None, runs: list[int]) -> tuple[list[str], float]:
    """Computes runs on a worker; returns their rows and the seconds that they took."""
    sweep = _read.get(text)
    if sweep is None:
        _read.clear()
        sweep = _read[text] = Sweep(text if "\n" in text else text + "\n", root)
    begun = time.perf_counter()
    lines = sweep.compute(runs)
    return lines, time.perf_counter() - begun


def sweep(
    study: str | PathLike[str],
    out: str | PathLike[str],
    *,
    client: Any = None,
    threads: int | None = None,
    shard: str | None = None,
    progress: bool = False,
) -> int:
    """Computes what is missing of a sweep in the store ``out``; returns how many runs this call computed.

    ``study`` is a file, or TOML text. With ``client``, a ``dask.distributed.Client``, the workers compute and this process
    writes; they need this package and no common file system, unless the sweep names files of its own. A worker that dies
    loses its tasks, which others then compute.
    """
    from . import _bar

    plan = Sweep(fspath(study))
    told, end = _bar(progress)
    try:
        if client is None:
            return plan.run(fspath(out), threads=threads, progress=told, shard=shard)
        if shard is not None:
            raise ValueError("shard: found it together with client, expected one of the two")
        return _on_cluster(plan, fspath(study), fspath(out), client, told)
    finally:
        end()


def _on_cluster(plan: Sweep, study: str, out: str, client: Any, told: Any) -> int:
    import os

    from distributed import as_completed

    root = None if "\n" in study else os.path.dirname(os.path.abspath(study))
    # A chunk that another process has is looked for again when ours are done.
    computed = 0
    try:
        while missing := plan.take(out):
            todo = [(chunk, run) for chunk, runs in missing for run in runs]
            for chunk, runs in missing:
                if not runs:
                    plan.add(out, chunk, [], [])
            todo.reverse()
            size, running = 1, {}

            def submit() -> Any:
                piece = [todo.pop() for _ in range(min(size, len(todo)))]
                # The rows do not depend on the worker, so a task may be repeated; its result is used once.
                future = client.submit(_work, plan.text, root, [r for _, r in piece], pure=False, retries=10)
                running[future] = piece
                return future

            slots = max(1, sum(client.nthreads().values())) * _AHEAD
            done = as_completed([submit() for _ in range(min(slots, len(todo)))])
            for future in done:
                lines, seconds = future.result()
                piece = running.pop(future)
                computed += len(piece)
                by_chunk: dict[int, tuple[list[int], list[str]]] = {}
                for (chunk, run), line in zip(piece, lines):
                    runs, texts = by_chunk.setdefault(chunk, ([], []))
                    runs.append(run)
                    texts.append(line)
                for chunk, (runs, texts) in by_chunk.items():
                    plan.add(out, chunk, runs, texts)
                size = max(1, min(10_000, round(len(piece) * _TASK / max(seconds, 1e-4))))
                if told is not None:
                    told(computed, len(plan))
                while todo and len(running) < slots:
                    done.add(submit())
    finally:
        plan.close(out)
    return computed
