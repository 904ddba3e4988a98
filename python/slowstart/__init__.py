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
from typing import Any, overload

from . import _slowstart
from ._advise import Advice, advise
from ._count import MOST_32, count
from ._figure import figure
from ._progress import bar
from ._replay import population, replay
from ._slowstart import (
    EXITS,
    Ack,
    Comparison,
    Congestion,
    Report,
    SendOrder,
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
    "Advice",
    "Comparison",
    "Congestion",
    "EXITS",
    "Report",
    "SendOrder",
    "Step",
    "Sweep",
    "Table",
    "View",
    "__version__",
    "advise",
    "compare",
    "diff",
    "explain",
    "figure",
    "fit",
    "heatmap",
    "league",
    "paths",
    "population",
    "query",
    "replay",
    "reproduce",
    "rows",
    "run",
    "startups",
    "suite",
    "sweep",
    "winners",
]


@overload
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
    against: Sequence[str | tuple[type, str]] | None = None,
    remember: str | None = None,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
    harm: bool = False,
) -> Comparison: ...
@overload
def compare(
    path: list[str] | tuple[str, ...],
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
    against: Sequence[str | tuple[type, str]] | None = None,
    remember: str | None = None,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
    harm: bool = False,
) -> list[Comparison]: ...
def compare(
    path: str | list[str] | tuple[str, ...],
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
    against: Sequence[str | tuple[type, str]] | None = None,
    remember: str | None = None,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
    harm: bool = False,
) -> Comparison | list[Comparison]:
    """Compares startups over a path: a built-in name, a TOML file, or a line such as ``rate=50Mbit rtt=80ms``.

    Of a list of paths the result is a list of comparisons. ``against`` are flows beside the one studied, such as
    ``"cubic@-5s"``; a startup in Python is one with its class, ``(Mine, "@-5s")``.
    ``startups`` are names, perhaps with parameters (``"search:threshold=0.3"``), or classes with a method ``on_ack``; all of
    the registry without it. ``runs`` to ``engine`` are the keys of a study file: ``engine="quic:quinn"`` runs a QUIC stack.
    The verdict compares with ``baseline``, by default what the engine runs by default, and takes differences below ``margin``
    percent for none. Without ``samples`` the result has rows only. With ``harm``, what a CUBIC flow beside each startup
    gets is measured, too (a startup in Python has no such rows).

    >>> compare("rate=20Mbit rtt=40ms", startups=["standard"], runs=1, size="500kB").rows["run"]
    [0]
    >>> compare("atlantis")
    Traceback (most recent call last):
    ...
    ValueError: path: found "atlantis"...
    """
    count("runs", runs, MOST_32)
    count("seed", seed)
    names = None if startups is None else list(startups)
    told, end = bar(progress)

    def one(path: str) -> Comparison:
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
            against=None if against is None else list(against),
            remember=remember,
            engine=engine,
            baseline=baseline,
            margin=margin,
            progress=told,
            samples=samples,
            harm=harm,
        )

    try:
        return one(path) if isinstance(path, str) else [one(p) for p in path]
    finally:
        end()


def run(
    study: str | PathLike[str],
    *,
    startups: Sequence[str | type] | None = None,
    against: Sequence[str | tuple[type, str]] | None = None,
    engine: str | None = None,
    baseline: str | None = None,
    margin: float = 3,
    progress: bool = False,
    samples: bool = True,
    harm: bool = False,
) -> Comparison:
    """Runs a study file, or a study as TOML text. ``startups``, ``against`` and ``engine`` go before its keys; ``baseline``,
    ``margin`` and ``harm`` are those of ``compare``.

    >>> run('path = "rate=20Mbit rtt=40ms"\\nstartups = ["standard"]\\nsize = "500kB"\\nruns = 1\\n').rows["class"]
    ['late']
    """
    told, end = bar(progress)
    try:
        return _slowstart.run(
            fspath(study),
            startups=None if startups is None else list(startups),
            against=None if against is None else list(against),
            engine=engine,
            baseline=baseline,
            margin=margin,
            progress=told,
            samples=samples,
            harm=harm,
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


def league(
    startups: Sequence[str | type] | None = None,
    *,
    population: Sequence[str] | None = None,
    runs: int | None = None,
    seed: int = 1,
    avoidance: str | None = None,
    engine: str | None = None,
    progress: bool = False,
) -> Table:
    """Scores startups over populations of paths against an oracle: a row for each startup in each case.

    Rows are those of ``slowstart league --json``: ``time_s`` over ``oracle_s`` is what a startup took over the least that any
    could take. ``runs`` are cases of each population, 40 by default.
    """
    count("runs", runs, MOST_32)
    count("seed", seed)
    told, end = bar(progress)
    try:
        return _slowstart.league(
            None if startups is None else list(startups),
            population=None if population is None else list(population),
            runs=runs,
            seed=seed,
            avoidance=avoidance,
            engine=engine,
            progress=told,
        )
    finally:
        end()


def suite(
    startups: Sequence[str | type] | None = None,
    *,
    scenarios: Sequence[str] | None = None,
    runs: int | None = None,
    seed: int = 1,
    avoidance: str | None = None,
    engine: str | None = None,
    file: str | PathLike[str] | None = None,
    progress: bool = False,
) -> Report:
    """Judges startups by the sections of RFC 9743: ``entries`` is a table, ``markdown()`` and ``html()`` are the report.

    ``scenarios`` are some of the suite's, ``file`` is a suite in place of the built-in one.
    """
    count("runs", runs, MOST_32)
    count("seed", seed)
    told, end = bar(progress)
    try:
        return _slowstart.suite(
            None if startups is None else list(startups),
            scenarios=None if scenarios is None else list(scenarios),
            runs=runs,
            seed=seed,
            avoidance=avoidance,
            engine=engine,
            file=None if file is None else fspath(file),
            progress=told,
        )
    finally:
        end()


def explain(
    path: str,
    startup: str | type,
    *,
    run: int = 0,
    seed: int | None = None,
    size: str | None = None,
    avoidance: str | None = None,
    profile: str | None = None,
    against: Sequence[str | tuple[type, str]] | None = None,
    engine: str | None = None,
) -> str:
    """One run of a startup in sentences: what it saw, what it did, why it left, and what that cost.

    >>> "by loss" in explain("rate=20Mbit rtt=40ms queue=1bdp", "standard", size="5MB")
    True
    """
    count("run", run, MOST_32)
    count("seed", seed)
    others = None if against is None else list(against)
    return _slowstart.explain(
        path, startup, run=run, seed=seed, size=size, avoidance=avoidance, profile=profile, against=others, engine=engine
    )


def diff(a: Any, b: Any, *, margin: float = 3) -> Table:
    """Compares two results startup by startup, run by run: a row for each startup of each path; ``b_is`` says what B is.

    Each is a ``Comparison``, several of them, or a folder or file of rows that the command line wrote.
    """
    return _slowstart.diff(a, b, margin=margin)
