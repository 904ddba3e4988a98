"""Sweeps on this machine or on a Dask cluster."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

from ._slowstart import Sweep

#: Seconds that a task is meant to take.
_TASK = 1.0
#: Tasks in flight for each thread of the workers, so that none waits for the next.
_AHEAD = 3
#: The most runs of a task.
_MOST = 10_000
#: Seconds after which chunks that another process has are tried again.
_LOOK_AGAIN = 0.2

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


def _on_cluster(plan: Sweep, study: str, out: str, client: Any, told: Callable[[int, int], None] | None) -> int:
    import distributed

    # It has no types.
    as_completed: Any = distributed.as_completed
    root = None if "\n" in study else os.path.dirname(os.path.abspath(study))
    collector = plan.collect(out)
    # Runs of chunks that this process has taken, each with the number of its chunk.
    taken: deque[tuple[int, int]] = deque()
    running: dict[Any, list[tuple[int, int]]] = {}
    computed, size = 0, 1

    def submit() -> Any:
        """Sends a task; None if there are no more runs to take."""
        while len(taken) < size and (chunk := collector.take()) is not None:
            number, runs = chunk
            taken.extend((number, run) for run in runs)
        piece = [taken.popleft() for _ in range(min(size, len(taken)))]
        if not piece:
            return None
        # A task that was lost with its worker is computed by another; its rows do not depend on who computes it.
        future = client.submit(_work, plan.text, root, [run for _, run in piece], pure=False)
        running[future] = piece
        return future

    try:
        while True:
            slots = max(1, sum(client.nthreads().values())) * _AHEAD
            done = as_completed([f for f in (submit() for _ in range(slots)) if f is not None])
            for future in done:
                lines, seconds = future.result()
                piece = running.pop(future)
                rows: dict[int, list[tuple[int, str]]] = {}
                for (chunk, run), line in zip(piece, lines):
                    rows.setdefault(chunk, []).append((run, line))
                for chunk, lines_of_chunk in rows.items():
                    collector.add(chunk, lines_of_chunk)
                computed += len(piece)
                size = max(1, min(_MOST, round(len(piece) * _TASK / max(seconds, 1e-4))))
                if told is not None:
                    told(computed, len(plan))
                while len(running) < slots and (more := submit()) is not None:
                    done.add(more)
            # Chunks that another process has: it may have ended without finishing them.
            if collector.retry() == 0:
                return computed
            time.sleep(_LOOK_AGAIN)
    finally:
        client.cancel(list(running))
        collector.close()
