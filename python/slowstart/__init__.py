"""Slow start and its successors: simulate, compare, replay and sweep startups of transport connections.

>>> import slowstart
>>> result = slowstart.compare("rate=20Mbit rtt=40ms", startups=["hystart", "standard"], runs=2, size="1MB")
>>> len(result.rows)
4
>>> sorted(set(result.rows["startup"]))
['hystart', 'standard']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath

from . import _slowstart
from ._count import MOST_32, count
from ._progress import bar
from ._replay import replay
from ._slowstart import (
    Ack,
    Comparison,
    Congestion,
    Mark,
    Step,
    Sweep,
    Table,
    View,
    __version__,
    heatmap,
    paths,
    query,
    rows,
    startups,
    winners,
)
from ._sweep import sweep

__all__ = [
    "Ack",
    "Comparison",
    "Congestion",
    "Mark",
    "Step",
    "Sweep",
    "Table",
    "View",
    "__version__",
    "compare",
    "fit",
    "heatmap",
    "paths",
    "query",
    "replay",
    "reproduce",
    "rows",
    "run",
    "startups",
    "sweep",
    "winners",
]


def compare(
    path: str,
    startups: Sequence[str | type] | None = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    size: str | None = None,
    duration: str | None = None,
    avoidance: str | None = None,
    profile: str | None = None,
    set: Mapping[str, str] | None = None,
    app: str | None = None,
    against: Sequence[str] | None = None,
    remember: str | None = None,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
) -> Comparison:
    """Compares startups over a path: a built-in name, a TOML file, or a line such as ``rate=50Mbit rtt=80ms``.

    ``startups`` are names, perhaps with parameters (``"search:threshold=0.3"``), or classes with a method ``on_ack``; all of
    the registry without it. ``runs`` to ``engine`` are the keys of a study file: ``engine="quic:quinn"`` runs a QUIC stack.
    The verdict compares with ``baseline``, by default what the engine runs by default, and takes differences below ``margin``
    percent for none. Without ``samples`` the result has rows only.

    >>> compare("rate=20Mbit rtt=40ms", startups=["standard"], runs=1, size="500kB").rows["run"]
    [0]
    >>> compare("atlantis")
    Traceback (most recent call last):
    ...
    ValueError: path: found "atlantis"...
    """
    count("runs", runs, MOST_32)
    count("seed", seed)
    told, end = bar(progress)
    try:
        names = None if startups is None else list(startups)
        return _slowstart.compare(
            path,
            names,
            runs=runs,
            seed=seed,
            size=size,
            duration=duration,
            avoidance=avoidance,
            profile=profile,
            set=set,
            app=app,
            against=against,
            remember=remember,
            engine=engine,
            baseline=baseline,
            margin=margin,
            progress=told,
            samples=samples,
        )
    finally:
        end()


def run(
    study: str | PathLike[str],
    *,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
) -> Comparison:
    """Runs a study file, or a study as TOML text. ``engine`` goes before its key ``engine``; ``baseline`` and ``margin`` are
    those of ``compare``.

    >>> run('path = "rate=20Mbit rtt=40ms"\\nstartups = ["standard"]\\nsize = "500kB"\\nruns = 1\\n').rows["class"]
    ['late']
    """
    told, end = bar(progress)
    try:
        return _slowstart.run(
            fspath(study), engine=engine, baseline=baseline, margin=margin, progress=told, samples=samples
        )
    finally:
        end()


def fit(files: str | PathLike[str] | Sequence[str | PathLike[str]], *, min_bytes: int = 1_000_000) -> Table:
    """Paths fitted to the transfers of captures: a row a transfer; its ``path`` is one that ``compare`` takes."""
    count("min_bytes", min_bytes)
    named = [files] if isinstance(files, (str, PathLike)) else list(files)
    return _slowstart.fit([fspath(f) for f in named], min_bytes=min_bytes)


def reproduce(ids: str | Sequence[str], *, seed: int = 1, full: bool = False) -> Table:
    """Repeats experiments of papers, such as ``"hystart/fig1"``: a row a claim, with what was claimed and measured."""
    count("seed", seed)
    return _slowstart.reproduce([ids] if isinstance(ids, str) else list(ids), seed=seed, full=full)
