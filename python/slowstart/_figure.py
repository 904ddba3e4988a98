"""Figures of results, by matplotlib."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from ._slowstart import Comparison, _measures

#: What a figure over time may show, with the label of its axis and what a value is divided by.
_OVER_TIME = {
    "cwnd_bytes": ("cwnd (kB)", 1e3),
    "ssthresh_bytes": ("ssthresh (kB)", 1e3),
    "inflight_bytes": ("bytes in flight (kB)", 1e3),
    "queue_bytes": ("queue (kB)", 1e3),
    "delivered_bytes": ("delivered (MB)", 1e6),
    "rtt_s": ("RTT (ms)", 1e-3),
}


def figure(
    result: Comparison, of: str = "completion_s", *, file: str | PathLike[str] | None = None, width: float = 3.4
) -> Any:
    """Draws a result with matplotlib; returns the ``Figure``. ``file`` is written if it is given (``.svg``, ``.pdf``, ``.png``).

    ``of`` is a figure of ``result.intervals``, drawn as the median of each startup with its 95 % interval; or a column of
    ``result.samples``, drawn over time for the run that is shown of each. Startups with runs that never got there say in how
    many. ``width`` is in inches: 3.4 is a column of a paper. Text in an SVG stays text, fonts are embedded in a PDF.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError("matplotlib is not installed: pip install matplotlib") from e
    columns = set(result.samples.column_names) & set(_OVER_TIME)
    figures = set(result.intervals.to_dict()["figure"])
    if of not in figures and of not in columns:
        known = ", ".join([*(f for f in _labels() if f in figures), *sorted(columns)])
        raise ValueError(f"of: found {of!r}, expected one of {known}")
    # Without pyplot: nothing is kept after the figure, and no window opens.
    drawn = Figure(figsize=(width, 2.4), layout="constrained")
    axes = drawn.subplots()
    if of in figures:
        _intervals(axes, result, of)
    else:
        _over_time(axes, result, of)
    axes.spines[["top", "right"]].set_visible(False)
    if file is not None:
        with matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "slowstart"}):
            drawn.savefig(fspath(file), metadata={"Date": None} if fspath(file).endswith(".svg") else None)
    return drawn


def _labels() -> dict[str, str]:
    """The label of the axis of each measure."""
    table = _measures().to_dict()
    return {name: f"{label} ({unit})" for name, label, unit in zip(table["name"], table["label"], table["unit"], strict=True)}


def _intervals(axes: Any, result: Comparison, of: str) -> None:
    table = result.intervals.to_dict()
    rows = [i for i, name in enumerate(table["figure"]) if name == of]
    labels = []
    for y, i in enumerate(rows):
        middle, low, high, runs, missing = (table[c][i] for c in ("median", "low", "high", "runs", "missing"))
        labels.append(table["startup"][i] + (f"\n(none in {missing}/{runs})" if missing else ""))
        if middle is not None:
            axes.errorbar(middle, y, xerr=[[middle - low], [high - middle]], fmt="o", markersize=3, capsize=2, color="black")
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(_labels()[of])


def _over_time(axes: Any, result: Comparison, of: str) -> None:
    label, unit = _OVER_TIME[of]
    samples = result.samples.to_dict()
    for startup in dict.fromkeys(samples["startup"]):
        own = [i for i, s in enumerate(samples["startup"]) if s == startup and samples["flow"][i] == 0]
        # matplotlib leaves a gap where a value is not a number.
        values = [samples[of][i] for i in own]
        axes.plot(
            [samples["time_s"][i] for i in own],
            [float("nan") if v is None else v / unit for v in values],
            linewidth=1,
            label=startup,
        )
    axes.set_xlabel("time (s)")
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize="small")
