"""Sweeps: the store, the command line's bytes, Dask workers that die."""

import os
import subprocess
import threading
import time

import pytest
from stores import command, files

import slowstart

SWEEP = """path = "rate=5Mbit rtt=20ms queue=1bdp"
startups = ["standard", "hystart"]
size = "100kB"
[axes]
rate = "5..25Mbit/10"
rtt = "20,40ms"
"""


def test_a_sweep_and_its_queries(tmp_path):
    store = str(tmp_path / "store")
    assert slowstart.sweep(SWEEP, store) == 40
    assert slowstart.sweep(SWEEP, store) == 0
    groups = slowstart.query(store, where=["rate>=15Mbit"], group=["startup"])
    assert groups["startup"] == ["hystart", "standard"] and groups["runs"] == [10, 10]
    winners = slowstart.winners(store, "rate", "rtt")
    assert len(winners) == 20 and set(winners["first"]) <= {"standard", "hystart"}
    page = slowstart.heatmap(store, "rate", "rtt")
    # 100 kB do not fill these paths, so both do the same, but for the slowest.
    assert (page.count("<td class=\"h"), page.count("<td class=\"tie")) == (1, 19) and "completion_s" in page
    assert len(slowstart.rows(store)) == 40
    with pytest.raises(ValueError, match="rate_of_change"):
        slowstart.Sweep(SWEEP + "rate_of_change = 1\n")
    with pytest.raises(ValueError, match="expected a store or an empty folder"):
        slowstart.sweep(SWEEP, os.path.dirname(__file__))


def test_a_map_names_a_winner_only_where_there_is_one(tmp_path):
    """rapid-start more than doubles a window each round trip, which counts where a round trip takes 100 ms or more: at
    1 ms both need the same time."""
    store = str(tmp_path / "store")
    text = """path = "rate=20Mbit rtt=1ms queue=1bdp"
startups = ["standard", "rapid-start"]
size = "1MB"
[axes]
rate = "10,20Mbit"
rtt = "1,100,200ms"
"""
    assert slowstart.sweep(text, store) == 12
    page = slowstart.heatmap(store, "rate", "rtt")
    assert (page.count("<td class=\"h"), page.count("<td class=\"tie")) == (3, 3)


def test_shards_make_the_store_of_the_whole(tmp_path):
    whole, shards = str(tmp_path / "whole"), str(tmp_path / "shards")
    slowstart.sweep(SWEEP, whole)
    assert sum(slowstart.sweep(SWEEP, shards, shard=f"{k}/3") for k in [1, 2, 3]) == 40
    assert files(whole) == files(shards)


def test_the_command_line_makes_the_same_bytes(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(SWEEP)
    subprocess.run([command(), "sweep", str(study), "--out", str(tmp_path / "command")], check=True)
    slowstart.sweep(study, tmp_path / "package")
    assert files(tmp_path / "command") == files(tmp_path / "package")


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
