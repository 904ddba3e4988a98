"""Which startup recordings of a service speak for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, TypedDict

from . import _slowstart
from ._count import count

#: A difference: ``is`` is "better", "worse", "none" or "not shown", the others its median and 95 % interval.
Effect = TypedDict("Effect", {"is": str, "median": float, "low": float, "high": float})


class InitialWindow(TypedDict):
    """What an initial window does, against one of 10 segments."""

    segments: int
    time_percent: Effect | None
    lost_packets: Effect | None


class Advice(TypedDict):
    """What ``advise`` returns, which is what ``slowstart advise --json`` prints."""

    schema: int
    version: str
    #: What was read: files, transfers, exits by class of RTT, agreement of startups with the recorded exits.
    recorded: dict[str, Any]
    in_use: str
    #: True if nothing shows it: it is assumed, as the default of Linux.
    in_use_is_assumed: bool
    #: The startup to try in a trial; None: stay with the one in use.
    use_instead: str | None
    #: Why there is no advice; None if there is one.
    none_because: str | None
    size_bytes: int | None
    #: The change of the time with the startup advised.
    time_percent: Effect | None
    #: Connections of a trial that finds this change with a probability of 80 %.
    trial_connections: int | None
    initial_windows: list[InitialWindow]
    #: The largest that loses no more than 10 segments do.
    largest_initial_window: int | None
    #: The change of a browser's median time of an object with tcp_slow_start_after_idle=0.
    without_idle_restart_percent: Effect | None
    verdict: str
    #: How sure it is, and what would make it surer, a sentence each.
    sure: list[str]
    #: What to run next.
    commands: list[str]


def advise(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    in_use: str | None = None,
    size: str | None = None,
    min_bytes: int = 100_000,
    cgroup: str | PathLike[str] | None = None,
) -> Advice:
    """Says which startup would serve the users of recorded connections best, how sure that is, and what to do next.

    ``files`` are captures or logs, or folders of them. The startups run over the paths that the transfers show, and are
    compared with ``in_use``, by default what most recordings name or show. ``size`` is that of the transfer to decide for,
    by default of the transfer in the middle. ``cgroup`` is that of the service, for the commands. Of several files those that
    cannot be read are warned of and skipped.
    """
    count("min_bytes", min_bytes)
    named = [files] if isinstance(files, (str, PathLike)) else list(files)
    advice: Advice = json.loads(
        _slowstart.advise(
            [fspath(f) for f in named], in_use=in_use, size=size, min_bytes=min_bytes, cgroup=cgroup
        )
    )
    return advice
