"""The installed package: results, tables, errors and interruptions."""

import ctypes
import doctest
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"
ROOT = os.environ["SLOWSTART_ROOT"]
CAPTURE = os.path.join(ROOT, "scenarios/captures/download.pcapng.gz")


def test_the_package_is_the_installed_one():
    assert not slowstart.__file__.startswith(os.path.join(ROOT, "python/slowstart"))
    assert os.path.exists(os.path.join(os.path.dirname(slowstart.__file__), "py.typed"))


def test_doctests():
    result = doctest.testmod(slowstart, optionflags=doctest.ELLIPSIS)
    assert result.attempted >= 5 and result.failed == 0


def test_compare_gives_rows_samples_events_and_a_page():
    result = slowstart.compare(PATH, startups=["search", "hystart++"], runs=2, size="2MB")
    assert len(result) == 4 and result.rows["run"] == [0, 1, 0, 1]
    assert result.rows["startup"] == ["search", "search", "hystart++", "hystart++"]
    assert set(result.samples["startup"]) == {"search", "hystart++"}
    assert max(result.samples["cwnd_bytes"]) > 50_000
    assert "exit" in result.events["what"]
    assert "search" in result.verdict or "hystart++" in result.verdict
    assert "<svg" in result.html() and result._repr_html_().startswith("<iframe srcdoc=")
    assert "<table>" in result.rows._repr_html_() and "<p>4 rows</p>" in result.rows._repr_html_()


def test_the_verdict_compares_with_the_baseline_that_is_named():
    chosen = {"startups": ["search", "hystart", "standard"], "runs": 6, "size": "2MB", "samples": False}
    assert "hystart" in slowstart.compare(PATH, **chosen).verdict
    result = slowstart.compare(PATH, baseline="standard", **chosen)
    assert "standard" in result.verdict and "standard" in result.html()
    verdicts = [slowstart.compare("geo", margin=margin, **chosen).verdict for margin in (3, 100)]
    assert verdicts[0] != verdicts[1], verdicts
    study = f'path = "{PATH}"\nstartups = ["standard", "search"]\nsize = "500kB"\nruns = 2\n'
    assert "search" in slowstart.run(study, baseline="search", samples=False).verdict
    for wrong, words in [({"baseline": "cubic"}, "baseline: found \"cubic\", expected one of the startups: search"), ({"margin": -1}, "margin: found -1")]:
        with pytest.raises(ValueError, match=words):
            slowstart.compare(PATH, **wrong, **chosen)


def test_the_same_call_gives_the_same_rows():
    rows = [slowstart.compare("geo", startups=["search"], runs=2, size="300kB").rows.to_dict() for _ in range(2)]
    assert rows[0] == rows[1]


def test_progress_is_reported_for_each_run():
    told = []
    slowstart._slowstart.compare(PATH, ["search"], runs=3, size="200kB", progress=lambda *n: told.append(n), samples=False)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_tables_are_read_through_arrow():
    table = slowstart.compare(PATH, startups=["search"], runs=2, size="500kB", samples=False).rows
    capsule = table.__arrow_c_stream__()
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    assert name(capsule) == b"arrow_array_stream"


def test_polars_pyarrow_duckdb_and_pandas_read_tables():
    polars, pyarrow, duckdb = (pytest.importorskip(m) for m in ["polars", "pyarrow", "duckdb"])
    pandas = pytest.importorskip("pandas")
    table = slowstart.compare(PATH, startups=["search"], runs=2, size="500kB", samples=False).rows
    times = table["completion_s"]
    frame = table.to_polars()
    assert isinstance(frame, polars.DataFrame) and frame.columns == table.column_names
    assert frame["completion_s"].to_list() == times
    assert pyarrow.table(table)["completion_s"].to_pylist() == times
    runs_of_search = table
    assert [r[0] for r in duckdb.sql("select completion_s from runs_of_search").fetchall()] == times
    del runs_of_search
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["completion_s"].tolist() == times


def test_bad_input_is_a_value_error():
    for call, message in [
        (lambda: slowstart.compare("atlantis"), "atlantis"),
        (lambda: slowstart.compare(PATH, startups=["serch"]), 'found "serch" .did you mean "search"'),
        (lambda: slowstart.replay("nowhere.pcap"), "nowhere.pcap"),
        (lambda: slowstart.query("nowhere"), "nowhere"),
        (lambda: slowstart.run("path = 'geo'\nrnus = 1\n"), "rnus"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="a method on_ack"):
        slowstart.compare(PATH, startups=[3])


def test_replay_fit_and_reproduce():
    rows = slowstart.replay(CAPTURE, startups=["search"])
    assert rows["class"] == ["link-full"] and rows["file"] == [CAPTURE]
    path = slowstart.fit(CAPTURE)["path"][0]
    assert "rate=" in path
    assert len(slowstart.compare(path, startups=["search"], runs=1, size="500kB", samples=False)) == 1
    claims = slowstart.reproduce("search/closed-form")
    assert claims["verdict"] == claims["recorded"] and len(claims) > 0
    assert "search" in slowstart.startups()["name"] and "geo" in slowstart.paths()["name"]


def test_replay_of_a_damaged_file_warns_and_returns_what_is_before_the_damage(tmp_path):
    import gzip

    whole = gzip.open(CAPTURE).read()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(whole[: len(whole) * 9 // 10 + 1])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        rows = slowstart.replay(cut, startups=[])
    assert len(rows) == 1 and len(seen) == 1 and "cut.pcapng" in str(seen[0].message)


def test_other_threads_run_while_it_computes():
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(1)
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    slowstart.compare("geo-144", startups=["standard"], runs=4, size="60MB", samples=False)
    stop.set()
    thread.join()
    assert len(ticks) > 3


LONG = """path = "rate=20Mbit rtt=40ms"
startups = ["search"]
runs = 1000
[axes]
seed = "1..100/100"
"""
SLOW = """
class Slow:
    def on_ack(self, view, ack):
        return view.slow_start_growth(ack)
"""


@pytest.mark.parametrize(
    "call",
    [
        f"slowstart.compare({PATH!r}, runs=100000, startups=['search'])",
        f"{SLOW}\nslowstart.compare({PATH!r}, runs=100000, startups=[Slow])",
        f"import tempfile\nslowstart.sweep({LONG!r}, tempfile.mkdtemp() + '/store')",
    ],
    ids=["compare", "startup in Python", "sweep"],
)
def test_ctrl_c_ends_a_call(call):
    code = f"import slowstart\nprint('begun', flush=True)\n{call}"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in err


FORKS = """
import os, signal, slowstart
path, capture, folder = {path!r}, {capture!r}, {folder!r}
study = os.path.join(folder, "study.toml")
open(study, "w").write('path = "rate=5Mbit rtt=20ms"\\nstartups = ["standard"]\\nsize = "50kB"\\nruns = 2\\n')
sweep = 'path = "rate=5Mbit rtt=20ms"\\nstartups = ["standard"]\\nsize = "50kB"\\n[axes]\\nrtt = "20,40,60ms"\\n'
def all(name):
    of = dict(startups=["search", "standard"], runs=2, size="200kB")
    compared = slowstart.compare(path, **of)
    return [
        compared.rows.to_dict(), slowstart.sweep(sweep, os.path.join(folder, name)), slowstart.replay(capture).to_dict(),
        slowstart.league(["search", "standard"], runs=2).to_dict(), slowstart.diff(compared, compared).to_dict(),
        slowstart.suite(["search"], scenarios=["bloated-dsl"], runs=1).entries.to_dict(),
        slowstart.explain(path, "search"), slowstart.fit(capture).to_dict(), slowstart.run(study).rows.to_dict(),
    ]
before = all("parent")
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if all("child") == before else 3)
status = os.waitpid(child, 0)[1]
assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes_as_its_parent(tmp_path):
    """`multiprocessing` forks on Linux until Python 3.13; a child has no thread but the one that forked."""
    code = FORKS.format(path=PATH, capture=CAPTURE, folder=str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


def test_numbers_outside_of_their_range_are_named():
    for name, value, call in [
        ("runs", -1, lambda v: slowstart.compare(PATH, runs=v)),
        ("runs", 2**40, lambda v: slowstart.compare(PATH, runs=v)),
        ("seed", -1, lambda v: slowstart.compare(PATH, seed=v)),
        ("min_bytes", -1, lambda v: slowstart.fit(CAPTURE, min_bytes=v)),
        ("min_bytes", 2**64, lambda v: slowstart.replay(CAPTURE, min_bytes=v)),
        ("threads", -1, lambda v: slowstart.replay(CAPTURE, out="store", threads=v)),
    ]:
        with pytest.raises(ValueError, match=f"{name}: found {value}, expected a whole number"):
            call(value)


def test_a_long_text_is_refused_at_once():
    begun = time.monotonic()
    with pytest.raises(ValueError, match="path: found \"a text of 50000000 bytes\"") as raised:
        slowstart.compare("x" * 50_000_000)
    assert len(str(raised.value)) < 200
    with pytest.raises(ValueError, match="runs: found"):
        slowstart.compare(PATH, startups=["search"], runs=200_000)
    assert time.monotonic() - begun < 20
