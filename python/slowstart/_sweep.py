"""Sweeps on this machine or on a Dask cluster."""

from __future__ import annotations

import os
import time
from os import PathLike, fspath
from typing import Any

from ._cluster import Task, collect
from ._count import count
from ._progress import bar
from ._slowstart import Sweep

# The sweep that this process, a worker, has read last.
_read: dict[str, Sweep] = {}


def _work(text: str, root: str | None, engine: str | None, runs: list[int]) -> tuple[list[str], float]:
    """Computes runs on a worker; returns their rows and the seconds that they took."""
    key = f"{engine}\n{text}"
    sweep = _read.get(key)
    if sweep is None:
        _read.clear()
        sweep = _read[key] = Sweep(text if "\n" in text else text + "\n", root, engine)
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
    engine: str | None = None,
    progress: bool = False,
) -> int:
    """Computes what is missing of a sweep in the store ``out``; returns how many runs this call computed.

    ``study`` is a file, or TOML text; ``engine`` goes before its key ``engine``. With ``client``, a ``dask.distributed.Client``, the workers compute and this process
    writes; they need this package and no common file system, unless the sweep names files of its own. A worker that dies
    loses its tasks, which others then compute.
    """
    count("threads", threads)
    study = fspath(study)
    plan = Sweep(study, engine=engine)
    told, end = bar(progress)
    try:
        if client is None:
            return plan.run(fspath(out), threads=threads, progress=told, shard=shard)
        if shard is not None:
            raise ValueError("shard: found it together with client, expected one of the two")
        root = None if "\n" in study else os.path.dirname(os.path.abspath(study))

        def task(runs: list[int]) -> Task:
            return _work, (plan.text, root, engine, runs)

        return collect(plan.collect(fspath(out)), task, client, told, len(plan))
    finally:
        end()
