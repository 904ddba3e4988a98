"""Sweeps on this machine or on a Dask cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from ._cluster import Task, collect
from ._code import code
from ._count import count
from ._progress import bar
from ._slowstart import Sweep

# The sweep that this process, a worker, has read last.
_read: dict[str, Sweep] = {}

Startups = Sequence["str | type"]
Against = Sequence["str | tuple[type, str]"]


def plan(
    study: str | PathLike[str],
    *,
    root: str | None = None,
    engine: str | None = None,
    startups: Startups | None = None,
    against: Against | None = None,
) -> Sweep:
    """Reads a sweep. Rows of a startup in Python are kept by the code of its class."""
    classes = [s for s in startups or () if not isinstance(s, str)]
    classes += [flow[0] for flow in against or () if not isinstance(flow, str)]
    hashes = {c.__name__: code(c) for c in classes}
    given = None if startups is None else list(startups)
    return Sweep(fspath(study), root, engine, given, None if against is None else list(against), hashes)


def _work(
    name: str,
    text: str,
    root: str | None,
    engine: str | None,
    given: tuple[Startups | None, Against | None],
    runs: list[int],
) -> tuple[list[str], float]:
    """Computes runs on a worker; returns their rows and the seconds that they took."""
    sweep = _read.get(name)
    if sweep is None:
        _read.clear()
        text = text if "\n" in text else text + "\n"
        sweep = _read[name] = plan(text, root=root, engine=engine, startups=given[0], against=given[1])
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
    startups: Startups | None = None,
    against: Against | None = None,
    progress: bool = False,
) -> int:
    """Computes what is missing of a sweep in the store ``out``; returns how many runs this call computed.

    ``study`` is a file, or TOML text; ``engine``, ``startups`` and ``against`` go before its keys. A startup may be a class: rows are
    kept by its code, so that a changed class computes anew. With ``client``, a ``dask.distributed.Client``, the workers compute and this process
    writes; they need this package and no common file system, unless the sweep names files of its own. A worker that dies
    loses its tasks, which others then compute.
    """
    count("threads", threads)
    study = fspath(study)
    made = plan(study, engine=engine, startups=startups, against=against)
    told, end = bar(progress)
    try:
        if client is None:
            return made.run(fspath(out), threads=threads, progress=told, shard=shard)
        if shard is not None:
            raise ValueError("shard: found it together with client, expected one of the two")
        root = None if "\n" in study else os.path.dirname(os.path.abspath(study))

        def task(runs: list[int]) -> Task:
            return _work, (made.id, made.text, root, engine, (startups, against), runs)

        return collect(made.collect(fspath(out)), task, client, told, len(made))
    finally:
        end()
