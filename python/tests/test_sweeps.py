"""Sweeps: the store, the command line's bytes, Dask workers that die."""

import os
import subprocess
import sys
import threading
import time

import pytest

import slowstart

SWEEP = """path = "rate=5Mbit rtt=20ms queue=1bdp"
startups = ["standard", "hystart"]
size = "100kB"
[axes]
rate = "5..25Mbit/10"
rtt = "20,40ms"
"""


def files(store):
    """The files of a store, by name."""
    found = [os.path.join(d, f) for d, _, names in os.walk(store) for f in names]
    return {os.path.relpath(f, store): open(f, "rb").read() for f in found}


def test_a_sweep_and_its_queries(tmp_path):
    store = str(tmp_path / "store")
    assert slowstart.sweep(SWEEP, store) == 40
    assert slowstart.sweep(SWEEP, store) == 0
    groups = slowstart.query(store, where=["rate>=15Mbit"], group=["startup"])
    assert groups["startup"] == ["hystart", "standard"] and groups["runs"] == [10, 10]
    winners = slowstart.winners(store, "rate", "rtt")
    assert len(winners) == 20 and set(winners["first"]) <= {"standard", "hystart"}
    page = slowstart.heatmap(store, "rate", "rtt")
    assert page.count("<rect") == 20 and "completion_s" in page
    assert len(slowstart.rows(store)) == 40
    with pytest.raises(ValueError, match="rate_of_change"):
        slowstart.Sweep(SWEEP + "rate_of_change = 1\n")
    with pytest.raises(ValueError, match="expected a store or an empty folder"):
        slowstart.sweep(SWEEP, os.path.dirname(__file__))


def test_shards_make_the_store_of_the_whole(tmp_path):
    whole, shards = str(tmp_path / "whole"), str(tmp_path / "shards")
    slowstart.sweep(SWEEP, whole)
    assert sum(slowstart.sweep(SWEEP, shards, shard=f"{k}/3") for k in [1, 2, 3]) == 40
    assert files(whole) == files(shards)


def test_the_command_line_makes_the_same_bytes(tmp_path):
    command = os.path.join(os.environ["SLOWSTART_ROOT"], "target/debug/slowstart")
    if not os.path.exists(command) or subprocess.run([command, "sweep", "--help"], capture_output=True).returncode != 0:
        pytest.skip("no build of the command with the feature sweep")
    study = tmp_path / "study.toml"
    study.write_text(SWEEP)
    subprocess.run([command, "sweep", str(study), "--out", str(tmp_path / "command")], check=True)
    slowstart.sweep(study, tmp_path / "package")
    assert files(tmp_path / "command") == files(tmp_path / "package")


class Cluster:
    """A scheduler and two workers of one thread each, as processes that speak TCP."""

    def __init__(self, folder):
        self.address = str(folder / "scheduler.json")
        self.log = open(folder / "log", "w")
        scheduler = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        worker = ["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.processes = [self.start(scheduler)] + [self.start(worker) for _ in range(2)]

    def start(self, command):
        command = [sys.executable, "-m", *command, "--scheduler-file", self.address]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def kill_a_worker(self):
        self.processes[1].kill()

    def end(self):
        for p in self.processes:
            p.kill()
            p.wait()
        self.log.close()


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("distributed")
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.end()


def test_dask_gives_the_same_bytes_though_a_worker_dies(tmp_path, cluster):
    from distributed import Client

    sweep = SWEEP.replace("100kB", "1MB").replace("/10", "/40")
    serial, remote = str(tmp_path / "serial"), str(tmp_path / "remote")
    assert slowstart.sweep(sweep, serial, threads=1) == 160
    with Client(scheduler_file=cluster.address, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)

        def kill():
            # After the first rows, and before the last.
            journal = os.path.join(remote, "journal")
            while not os.path.isdir(journal) or not any(os.path.getsize(f) for f in os.scandir(journal)):
                time.sleep(0.001)
            cluster.kill_a_worker()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        assert slowstart.sweep(sweep, remote, client=client) == 160
        killer.join()
        assert cluster.processes[1].wait() == -9
        begun = time.monotonic()
    # Leaving closes the client.
    assert time.monotonic() - begun < 5
    assert files(serial) == files(remote)
    assert slowstart.sweep(sweep, remote) == 0


def test_workers_compute_only_what_is_missing(tmp_path, cluster):
    from distributed import Client

    with Client(scheduler_file=cluster.address, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
        with pytest.raises(ValueError, match="together with client"):
            slowstart.sweep(SWEEP, tmp_path / "store", client=client, shard="1/2")
        assert slowstart.sweep(SWEEP, tmp_path / "store", shard="1/2") == 24
        assert slowstart.sweep(SWEEP, tmp_path / "store", client=client) == 16
