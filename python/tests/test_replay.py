"""Many recordings into a store: serial, by the command line, by Dask workers that die."""

import os
import shutil
import subprocess
import threading
import time

import pytest
from stores import command, files

import slowstart

ROOT = os.environ["SLOWSTART_ROOT"]
CAPTURE = os.path.join(ROOT, "scenarios/captures/download.pcapng.gz")
SAMPLES = """{0}.5
ESTAB 0 0 10.0.0.1:443 10.0.0.2:5000
\t cubic rtt:40/2 mss:1448 cwnd:{0} retrans:0/1
"""


@pytest.fixture
def captures(tmp_path):
    """A folder with files of two formats, in folders within it, and two that cannot be read."""
    folder = tmp_path / "captures"
    for n in range(40):
        within = folder / str(n % 3)
        within.mkdir(parents=True, exist_ok=True)
        if n % 2 == 0:
            shutil.copy(CAPTURE, within / f"{n:03}.pcapng.gz")
        else:
            (within / f"{n:03}.txt").write_text("".join(SAMPLES.format(w) for w in [10, 20, 40 + n]))
    (folder / "torn.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    (folder / "notes").write_text("nothing\n")
    return folder


STARTUPS = ["hystart", "search"]


def test_many_files_and_what_became_of_them(captures, tmp_path):
    store = tmp_path / "store"
    told = slowstart.replay(captures, STARTUPS, out=store)
    assert len(told) == 42 and told["rows"] == [1] * 40 + [0, 0]
    assert told["failed"] == [False] * 40 + [True, True]
    assert [os.path.basename(f) for f in told["file"][40:]] == ["notes", "torn.pcap"]
    assert "unknown format" in told["error"][40]
    all = slowstart.population(captures, STARTUPS, out=store)
    assert all["startup"] == [None, *STARTUPS] and all["full_before_loss"][0] is None
    # Startups run over packets; the other half are samples of TCP_INFO.
    assert [sum(n) for n in zip(*(all[c] for c in ("early", "link-full", "late", "none", "unknown")))] == [40, 20, 20]
    rows = slowstart.rows(store, ["file", "class"])
    assert len(rows) == 40 and set(rows["file"]) == set(told["file"][:40])
    before = files(store)
    assert slowstart.replay(captures, STARTUPS, out=store).to_dict() == told.to_dict()
    assert files(store) == before
    # A file that is added is the only one read: its chunk is the only new one.
    shutil.copy(CAPTURE, captures / "new.pcapng.gz")
    assert len(slowstart.replay(captures, STARTUPS, out=store)) == 43
    assert len(files(store)) == len(before) + 2


def test_bad_arguments(captures, tmp_path):
    for call, message in [
        (lambda: slowstart.replay([CAPTURE, CAPTURE]), "several files without out"),
        (lambda: slowstart.replay(CAPTURE, client=3), "client: found it without out"),
        (lambda: slowstart.replay(captures, ["serch"], out=tmp_path / "s"), "serch"),
        (lambda: slowstart.replay(captures, out=captures), "the folder is of another program"),
        (lambda: slowstart.replay(tmp_path / "captures/0/empty", out=tmp_path / "s"), "found no file"),
    ]:
        (tmp_path / "captures/0/empty").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match=message):
            call()


def test_the_command_line_makes_the_same_bytes(captures, tmp_path, monkeypatch):
    arguments = ["replay", "captures", "--startup", ",".join(STARTUPS), "--out", "command"]
    monkeypatch.chdir(tmp_path)
    # Two files cannot be read.
    assert subprocess.run([command(), *arguments], capture_output=True).returncode == 2
    slowstart.replay("captures", STARTUPS, out="package")
    assert files("command") == files("package")


def test_dask_gives_the_same_bytes_though_a_worker_dies(captures, tmp_path, cluster, monkeypatch):
    from distributed import Client

    # Names relative to the folder of this process, which is not that of the workers.
    monkeypatch.chdir(tmp_path)
    serial = slowstart.replay("captures", STARTUPS, out="serial", threads=1)
    with Client(scheduler_file=cluster.address, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)

        def kill():
            # After the first rows, and before the last.
            while not os.path.isdir("remote/journal") or not any(os.path.getsize(f) for f in os.scandir("remote/journal")):
                time.sleep(0.001)
            cluster.kill_a_worker()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        remote = slowstart.replay("captures", STARTUPS, out="remote", client=client)
        killer.join()
        assert cluster.processes[1].wait() == -9
    assert serial.to_dict() == remote.to_dict()
    assert files("serial") == files("remote")
