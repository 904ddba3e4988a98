"""A startup in Python goes through every door that takes names; what comes out has intervals and figures."""

import json
import re

import pytest

import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"


class Standard:
    def on_ack(self, view, ack):
        return view.slow_start_growth(ack)


class Broken(Standard):
    def on_ack(self, view, ack):
        raise KeyError("nothing there")


SAME = ["completion_s", "exit_reason", "exit_time_s", "exit_cwnd_bytes", "lost_packets", "class", "seed"]


def test_a_study_and_several_paths():
    study = f'path = "{PATH}"\nstartups = ["search"]\nsize = "2MB"\nruns = 2\n'
    rows = slowstart.run(study, startups=["standard", Standard]).rows
    assert rows["startup"] == ["standard", "standard", "Standard", "Standard"]
    for column in SAME:
        assert rows[column][:2] == rows[column][2:], column
    assert slowstart.run(study).rows["startup"] == ["search", "search"]
    both = slowstart.compare([PATH, "lte"], [Standard, "standard"], runs=1, size="1MB")
    assert [len(c) for c in both] == [2, 2] and both[1].rows["path"] == ["lte", "lte"]


@pytest.mark.parametrize("entry", ["{}@-1s", "{}*3@-2s"])
def test_flows_beside_the_one_studied(entry):
    when = entry.removeprefix("{}")
    ours = slowstart.compare(PATH, ["hystart"], runs=2, size="2MB", against=["cubic@-1s", (Standard, when)])
    theirs = slowstart.compare(PATH, ["hystart"], runs=2, size="2MB", against=["cubic@-1s", entry.format("standard")])
    alone = slowstart.compare(PATH, ["hystart"], runs=2, size="2MB", against=["cubic@-1s"])
    assert ours.rows["completion_s"] == theirs.rows["completion_s"] != alone.rows["completion_s"]
    with pytest.raises(RuntimeError, match="startup Broken, run 0, on_ack at .*nothing there"):
        slowstart.compare(PATH, ["hystart"], runs=1, size="1MB", against=[(Broken, "@-1s")])
    with pytest.raises(TypeError, match="against: expected texts"):
        slowstart.compare(PATH, ["hystart"], against=[Standard])


SWEEP = f'path = "{PATH}"\nstartups = ["standard"]\nsize = "500kB"\nruns = 2\n[axes]\nrate = "5,20Mbit"\n'


def test_a_sweep_keeps_rows_by_the_code_of_a_class(tmp_path):
    store = tmp_path / "store"
    assert slowstart.sweep(SWEEP, store, startups=["standard", Standard]) == 8
    assert slowstart.sweep(SWEEP, store, startups=["standard", Standard]) == 0
    assert slowstart.sweep(SWEEP, tmp_path / "shards", startups=[Standard], shard="1/1", threads=2) == 4
    rows = slowstart.query(store, columns=["startup", "rate", "run", "completion_s"]).to_dict()
    ours, theirs = (
        sorted(r[1:] for r in zip(*rows.values()) if r[0] == name) for name in ("Standard", "standard")
    )
    assert len(ours) == 4 and ours == theirs

    class Changed(Standard):
        def on_ack(self, view, ack):
            return view.slow_start_growth(ack) // 2

    Changed.__name__ = "Standard"
    assert slowstart.sweep(SWEEP, store, startups=["standard", Changed]) == 4
    with pytest.raises(RuntimeError, match="startup Broken, run [01], on_ack at"):
        slowstart.sweep(SWEEP, tmp_path / "broken", startups=[Broken])
    with pytest.raises(TypeError, match="expected a class, by whose code"):
        slowstart.sweep(SWEEP, store, startups=[lambda: Standard()])


def test_a_query_has_intervals_and_differences(tmp_path):
    store = tmp_path / "store"
    slowstart.sweep(SWEEP.replace("runs = 2", "runs = 7"), store, startups=["standard", "hystart"])
    table = slowstart.query(store, group=["startup", "rate"], baseline="standard")
    assert table["completion_s_pairs"] == [7] * 4
    of = table["startup"].index("standard")
    assert table["completion_s_difference_percent"][of] == 0
    assert all(a <= b <= c for a, b, c in zip(*(table[f"completion_s_{c}"] for c in ("low", "median", "high"))))


def test_the_league_and_the_suite():
    rows = slowstart.league(["standard", Standard], population=["geo", "beside-web", "random"], runs=1)
    names = rows["startup"]
    half = len(names) // 2
    assert names == ["standard"] * half + ["Standard"] * half and half > 3
    for column in ["time_s", "oracle_s", "lost_packets", "exit", "fairness", "others_delay_p99_s"]:
        assert rows[column][:half] == rows[column][half:], column
    with pytest.raises(RuntimeError, match="startup Broken.*nothing there"):
        slowstart.league([Broken], population=["beside-web"], runs=1)
    with pytest.raises(ValueError, match=r'population: found "gio" \(did you mean "geo"'):
        slowstart.league(["standard"], population=["gio"])

    report = slowstart.suite(["standard", Standard], scenarios=["geo"], runs=2)
    entries = report.entries.to_dict()
    ours, theirs = (
        [r for r in zip(entries["criterion"], entries["verdict"], entries["value"], entries["startup"]) if r[3] == name]
        for name in ("Standard", "standard")
    )
    assert ours and [r[:3] for r in ours] == [r[:3] for r in theirs]
    assert json.loads(report.json())["startups"] == ["standard", "Standard"]
    assert "Standard" in report.markdown() and "<html" in report.html()
    with pytest.raises(ValueError, match='scenarios: found "goe"'):
        slowstart.suite(["standard"], scenarios=["goe"])


def test_one_run_in_sentences():
    told = slowstart.explain(PATH, "standard", size="5MB")
    ours = slowstart.explain(PATH, Standard, size="5MB")
    assert "This is by loss" in told and "What that cost" in told
    times = [re.findall(r"^ +([0-9.]+) s ", t, re.MULTILINE) for t in (told, ours)]
    assert times[0] == times[1] and len(times[0]) > 3


def test_two_results_beside_each_other(tmp_path):
    a = slowstart.compare(PATH, ["standard", "hystart"], runs=7, size="2MB")
    b = slowstart.compare(PATH, ["standard", Standard], runs=7, size="2MB")
    table = slowstart.diff(a, b)
    assert dict(zip(table["startup"], table["b_is"])) == {"standard": "same", "hystart": "missing", "Standard": "new"}
    assert table["pairs"][0] == 7 and table["percent"][0] == 0
    with pytest.raises(ValueError, match="found no results.jsonl"):
        slowstart.diff(tmp_path, b)
    with pytest.raises(ValueError, match="expected 0 to 100 percent"):
        slowstart.diff(a, b, margin=-1)


def test_intervals_and_differences_are_tables():
    result = slowstart.compare(
        "rate=20Mbit rtt=100ms queue=1bdp jitter=5ms", ["hystart", "standard"], runs=10, size="3MB", baseline="standard"
    )
    times = sorted(t for t, s in zip(result.rows["completion_s"], result.rows["startup"]) if s == "hystart")
    intervals = result.intervals.to_dict()
    at = list(zip(intervals["startup"], intervals["figure"])).index(("hystart", "completion_s"))
    assert (intervals["low"][at], intervals["high"][at]) == (times[1], times[8])
    assert intervals["missing"][at] == 0
    differences = result.differences.to_dict()
    assert set(differences["baseline"]) == {"standard"} and set(differences["startup"]) == {"hystart"}
    assert set(differences["change"]) <= {"better", "worse", "even", "not-shown", "too-few"}


@pytest.mark.parametrize(("of", "name"), [("completion_s", "a.svg"), ("cwnd_bytes", "a.pdf"), ("inflight_bytes", "b.svg")])
def test_a_figure_in_one_call(tmp_path, of, name):
    pytest.importorskip("matplotlib")
    result = slowstart.compare(PATH, ["standard", Standard], runs=6, size="2MB")
    for file in (tmp_path / name, tmp_path / f"again-{name}"):
        slowstart.figure(result, of, file=file)
    written = (tmp_path / name).read_bytes()
    if name.endswith(".svg"):
        # Text stays text, and the same result gives the same bytes.
        assert b"Standard" in written and b"<svg" in written
        assert written == (tmp_path / f"again-{name}").read_bytes()
    else:
        assert written.startswith(b"%PDF") and b"/FontFile2" in written
    with pytest.raises(ValueError, match="of: found 'speed', expected one of time_to_10mb_s"):
        slowstart.figure(result, "speed")


def test_the_names_of_exits():
    assert {"loss", "delay", "rate-flat"} <= set(slowstart.EXITS)
    for name in slowstart.EXITS:
        slowstart.Step(exit=name)


def test_what_others_get_is_data(tmp_path):
    """A CUBIC flow beside each startup, and the goodput of the flows that were there before, second by second."""
    path, startups = "rate=10Mbit rtt=40ms queue=1bdp", ["standard", "hystart"]
    result = slowstart.compare(path, startups=startups, runs=6, size="2MB", samples=False, harm=True)
    got = result.rows["got_percent"]
    assert len(got) == 12 and all(0 < each <= 110 for each in got)
    differences = result.differences.to_dict()
    own = differences["figure"].index("got_percent")
    assert differences["startup"][own] == "standard" and differences["unit"][own] == "percent"
    assert differences["low"][own] <= differences["median"][own] <= differences["high"][own]
    plain = slowstart.compare(path, startups=startups, runs=2, size="100kB", samples=False)
    assert set(plain.rows["got_percent"]) == {None} and "got_percent" not in plain.differences["figure"]
    with pytest.raises(ValueError, match="harm: .*other flows already"):
        slowstart.compare(path, startups=startups, runs=2, against=["cubic@-5s"], harm=True)
    rows = slowstart.compare(path, startups=startups, runs=1, size="5MB", samples=False, against=["cubic@-9s"]).rows
    for row in zip(rows["others_seconds_bps"], rows["others_goodput_bps"], rows["others_goodput_before_bps"], strict=True):
        seconds = json.loads(row[0])
        assert len(seconds) > 3 and row[1] == pytest.approx(sum(seconds) / len(seconds)) and row[2] > row[1]
