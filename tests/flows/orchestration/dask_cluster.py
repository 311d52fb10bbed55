"""A cluster of Dask on this machine, in processes of their own, and flow runs whose batches it processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.refresh import run_request
from parquetry.planning.report import RunReport
from tests.flows.orchestration.embedding_service import PATIENCE
from tests.workshop import Workshop


@dataclass
class Cluster:
    """A scheduler of Dask, and workers that are started one by one."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """the scheduler and the workers, of which the last is the one to kill"""

    def start(self, program: str, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        # As docs/many-machines.md asks for.
        environment["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"
        command = [sys.executable, "-m", "distributed.cli.dask_" + program, "--no-dashboard"]
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            place = ["--scheduler-file", str(self.folder / "scheduler.json")]
            self.processes.append(
                subprocess.Popen([*command, *place, *arguments], stdout=log, stderr=log, env=environment)
            )

    def start_worker(self) -> None:
        self.start("worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--death-timeout", "300")

    def wait(self, workers: int) -> str:
        """Wait for the workers, replace killed ones, and return the scheduler's address."""
        from distributed import Client

        for _ in range(workers - sum(process.poll() is None for process in self.processes[1:])):
            self.start_worker()
        with Client(scheduler_file=str(self.folder / "scheduler.json"), timeout=PATIENCE) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
            address: str = client.scheduler.address
            return address


@contextmanager
def started(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a cluster, and kill its processes in the end."""
    cluster = Cluster(folder)
    cluster.start("scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        for process in cluster.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with started(tmp_path_factory.mktemp("dask"), 2) as cluster:
        yield cluster


def on_dask(workshop: Workshop, address: str | None, **refresh: float) -> RunReport:
    workshop.sections["refresh"] = {"batch_documents": 2, "workers": 2, **refresh}
    workshop.sections["run"] = {"task_runner": "dask", **({"address": address} if address else {})}
    return run_request(RefreshRequest(workshop.settings), Observer(), alone=True)
