"""Recordings of connections: one file, or many into a store."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from . import _slowstart
from ._cluster import Task, collect
from ._count import count
from ._progress import bar
from ._slowstart import Captures, Table, read_capture, results_version


def _work(
    folder: str, files: list[tuple[str, str]], startups: list[str], min_bytes: int, version: str
) -> tuple[list[str], float]:
    """Reads files, whose names are relative to `folder`, on a worker; returns their lines and the seconds that they took."""
    begun = time.perf_counter()
    lines = [read_capture(os.path.join(folder, f[0]), f, startups, min_bytes, version) for f in files]
    return lines, time.perf_counter() - begun


def replay(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    startups: Sequence[str] | None = None,
    *,
    min_bytes: int = 0,
    out: str | PathLike[str] | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
) -> Table:
    """When the connections of a capture or log left slow start, and when each startup would have: a row a connection.

    If the file is damaged, it warns and returns the connections before the damage.

    With ``out``, ``path`` may be several files, or a folder. Files that are missing in this store, or have changed, are read
    on all processors, or by the workers of ``client``, a ``dask.distributed.Client``, who need to see the files under the same
    names. Returned is what became of each file: its number of ``rows``, and the ``error`` if it could not be read, or not to
    its end. ``query`` and ``rows`` read the store.
    """
    count("min_bytes", min_bytes)
    count("threads", threads)
    names = None if startups is None else list(startups)
    if out is None:
        for name, value in [("client", client), ("threads", threads)]:
            if value is not None:
                raise ValueError(f"{name}: found it without out, expected a store for the rows")
        if not isinstance(path, (str, PathLike)):
            raise ValueError("path: found several files without out, expected a store for their rows")
        return _slowstart.replay(fspath(path), names, min_bytes=min_bytes)
    store = fspath(out)
    files = [path] if isinstance(path, (str, PathLike)) else list(path)
    captures = Captures([fspath(f) for f in files], names, min_bytes=min_bytes)
    told, end = bar(progress, "file")
    try:
        if client is None:
            captures.run(store, threads=threads, progress=told)
        else:
            folder = os.getcwd()

            def task(numbers: list[int]) -> Task:
                return _work, (folder, captures.tasks(numbers), captures.startups, min_bytes, results_version)

            collect(captures.collect(store), task, client, told, len(captures))
    finally:
        end()
    return captures.records(store)


def population(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    startups: Sequence[str] | None = None,
    *,
    out: str | PathLike[str],
    min_bytes: int = 0,
) -> Table:
    """How the connections of many files left slow start, and what each startup would have done: counts a class, and medians.

    The first row, whose ``startup`` is null, is what was observed. ``replay`` with the same arguments wrote the store ``out``.
    """
    count("min_bytes", min_bytes)
    files = [path] if isinstance(path, (str, PathLike)) else list(path)
    names = None if startups is None else list(startups)
    return Captures([fspath(f) for f in files], names, min_bytes=min_bytes).population(fspath(out))
