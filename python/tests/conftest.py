"""A Dask cluster for tests."""

import subprocess
import sys

import pytest


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
