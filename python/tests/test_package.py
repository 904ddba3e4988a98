"""The installed package: results, tables, startups in Python, sweeps."""

import ctypes
import doctest
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"


def test_doctests():
    result = doctest.testmod(slowstart, optionflags=doctest.ELLIPSIS)
    assert result.attempted >= 5 and result.failed == 0


def test_compare_gives_rows_samples_events_and_a_page():
    result = slowstart.compare(PATH, startups=["search", "hystart++"], runs=2, size="2MB")
    assert len(result) == 4 and result.rows["run"] == [0, 1, 0, 1]
    assert set(result.samples["startup"]) == {"search", "hystart++"}
    assert max(result.samples["cwnd_bytes"]) > 50_000
    assert "exit" in result.events["what"]
    assert "search" in result.verdict or "hystart++" in result.verdict
    assert "<svg" in result.html() and result._repr_html_().startswith("<iframe srcdoc=")
    assert "<table>" in result.rows._repr_html_()


def test_the_same_call_gives_the_same_rows():
    rows = [slowstart.compare("geo", startups=["search"], runs=2, size="300kB").rows.to_dict() for _ in range(2)]
    assert rows[0] == rows[1]


def test_tables_are_read_through_arrow():
    table = slowstart.compare(PATH, startups=["search"], runs=2, size="500kB", samples=False).rows
    capsule = table.__arrow_c_stream__()
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    assert name(capsule) == b"arrow_array_stream"
    polars = pytest.importorskip("polars")
    frame = table.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["completion_s"].to_list() == table["completion_s"]
    assert frame.columns == table.column_names


def test_bad_input_is_a_value_error():
    for call in [
        lambda: slowstart.compare("atlantis"),
        lambda: slowstart.compare(PATH, startups=["serch"]),
        lambda: slowstart.replay("nowhere.pcap"),
        lambda: slowstart.query("nowhere"),
        lambda: slowstart.run("path = 'geo'\nrnus = 1\n"),
    ]:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        slowstart.compare(PATH, startups=[3])


def test_replay_fit_and_reproduce():
    capture = os.path.join(os.environ["SLOWSTART_ROOT"], "scenarios/captures/download.pcapng.gz")
    rows = slowstart.replay(capture, startups=["search"])
    assert rows["class"] == ["choke-point"] and rows["file"] == [capture]
    assert "rate=" in slowstart.fit(capture)["path"][0]
    claims = slowstart.reproduce("search/closed-form")
    assert claims["verdict"] == claims["recorded"] and len(claims) > 0
    assert "search" in slowstart.startups()["name"] and "geo" in slowstart.paths()["name"]


class Standard:
    def on_ack(self, view, ack):
        return view.slow_start_growth(ack)


class Doubled:
    """The startup of CONTRIBUTING.md."""

    def on_ack(self, view, ack):
        if ack.rtt_ns is not None and view.min_rtt_ns is not None and ack.rtt_ns > 2 * view.min_rtt_ns:
            return slowstart.Step(exit="delay")
        return view.slow_start_growth(ack)


class Limited:
    """Limited slow start (RFC 3742), as crates/slowstart/src/startup/limited.rs."""

    def on_ack(self, view, ack):
        earned, most = view.slow_start_growth(ack), 100 * view.mss
        return earned if view.cwnd <= most else earned // (view.cwnd * 2 // most)


def windows(result, name):
    samples = result.samples.to_dict()
    keep = [i for i, s in enumerate(samples["startup"]) if s == name]
    return [(samples["time_s"][i], samples["cwnd_bytes"][i], samples["inflight_bytes"][i]) for i in keep]


@pytest.mark.parametrize("path", [PATH, "geo-144", "rate=10Mbit rtt=50ms loss=1%"])
@pytest.mark.parametrize(("mine", "name"), [(Standard, "standard"), (Limited, "limited")])
def test_a_startup_in_python_has_the_windows_of_the_same_in_rust(path, mine, name):
    result = slowstart.compare(path, startups=[mine, name], runs=2, size="3MB")
    assert len(windows(result, name)) > 100
    assert windows(result, mine.__name__) == windows(result, name)


def test_a_startup_leaves_by_its_own_rule():
    result = slowstart.compare("rate=20Mbit rtt=40ms queue=4bdp", startups=[Doubled], runs=1, size="5MB")
    assert result.rows["exit_reason"] == ["delay"] and result.rows["startup"] == ["Doubled"]


def test_an_exception_names_the_run_and_the_event():
    class Broken:
        def __init__(self):
            self.n = 0

        def on_ack(self, view, ack):
            self.n += 1
            if self.n == 20:
                raise KeyError("nothing there")
            return ack.bytes

    with pytest.raises(RuntimeError, match=r"startup Broken, run 0: on_ack at [0-9.]+ s: 'nothing there'") as raised:
        slowstart.compare(PATH, startups=[Broken], runs=2, size="2MB")
    assert isinstance(raised.value.__cause__, KeyError)

    class Wrong:
        def on_ack(self, view, ack):
            return "fast"

    with pytest.raises(RuntimeError, match="expected a Step, bytes of growth or None"):
        slowstart.compare(PATH, startups=[Wrong], runs=1)


def test_the_interpreter_is_free_while_it_computes():
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


def test_ctrl_c_ends_a_call():
    code = f"import slowstart; print('begun', flush=True); slowstart.compare({PATH!r}, runs=100000, startups=['search'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in err


SWEEP = """path = "rate=5Mbit rtt=20ms queue=1bdp"
startups = ["standard", "hystart"]
size = "100kB"
[axes]
rate = "5..25Mbit/10"
rtt = "20,40ms"
"""


def files(store):
    return {
        os.path.relpath(os.path.join(d, f), store): open(os.path.join(d, f), "rb").read()
        for d, _, names in os.walk(store)
        for f in names
    }


def test_a_sweep_and_its_queries(tmp_path):
    store = str(tmp_path / "store")
    assert slowstart.sweep(SWEEP, store) == 40
    assert slowstart.sweep(SWEEP, store) == 0
    groups = slowstart.query(store, where=["rate>=15Mbit"], group=["startup"])
    assert groups["startup"] == ["hystart", "standard"] and groups["runs"] == [10, 10]
    assert len(slowstart.winners(store, "rate", "rtt")) == 20
    assert len(slowstart.rows(store)) == 40
    with pytest.raises(ValueError, match="rate_of_change"):
        slowstart.Sweep(SWEEP + "rate_of_change = 1\n")


def test_dask_gives_the_same_bytes_though_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    address = str(tmp_path / "scheduler.json")
    start = lambda *args: subprocess.Popen([sys.executable, "-m", *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    common = ["--scheduler-file", address]
    processes = [start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *common)]
    worker = lambda: start("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *common)
    try:
        processes += [worker(), worker()]
        sweep = SWEEP.replace("100kB", "2MB").replace("/10", "/40")
        serial, remote = str(tmp_path / "serial"), str(tmp_path / "remote")
        slowstart.sweep(sweep, serial)
        with distributed.Client(scheduler_file=address, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)

            def kill():
                time.sleep(0.7)
                processes[1].kill()

            killer = threading.Thread(target=kill)
            killer.start()
            assert slowstart.sweep(sweep, remote, client=client) >= 160
            killer.join()
            begun = time.monotonic()
        assert time.monotonic() - begun < 5
        assert files(serial) == files(remote)
    finally:
        for p in processes:
            p.kill()
            p.wait()


def test_the_environment_is_one_and_the_baseline_is_standard():
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    from slowstart import gym

    check_env(gym.SlowStart("rate=20Mbit rtt=40ms", size="500kB"), skip_render_check=True)
    env = gymnasium.make("slowstart/SlowStart-v0", path=PATH, size="3MB")
    for run in range(3):
        observation, _ = env.reset(options={"seed": 1, "run": run})
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(gym.standard(observation))
            over = terminated or truncated
        ours = env.unwrapped.row()
        theirs = slowstart.compare(PATH, startups=["standard"], runs=run + 1, size="3MB", samples=False).rows
        for key in ["completion_s", "lost_packets", "peak_inflight_bytes", "retransmitted_packets", "seed", "goodput_bps"]:
            assert ours[key] == theirs[key][run], key
        assert ours["exit"]["cwnd_bytes"] == theirs["exit_cwnd_bytes"][run]
