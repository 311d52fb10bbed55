"""`python -m deployments` as operators run it: a server, deployments, runs that people ask for, and an orderly end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

PATIENCE = 150
"""seconds that anything may take on a busy machine"""


class Service:
    """A running `python -m deployments` and its API."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process, self.output = process, output
        self.processes: list[psutil.Process] = []

    def wait_until_ready(self) -> None:
        self._wait(lambda: "Serving;" in self.output.read_text())
        lines = self.output.read_text().splitlines()
        (self.url,) = [line.partition(": ")[2] for line in lines if line.startswith("Prefect UI: ")]

    def api(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/api{path}", data, {"Content-Type": "application/json"})
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(request, timeout=30) as reply:
                    return json.load(reply)
            except HTTPError as error:
                # What a server says while its database is busy, and what Prefect's own client tries again.
                if error.code != 503 or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def run(self, deployment: str, **parameters: Any) -> str:
        """Ask for a flow run; returns its id."""
        found = self.api(f"/deployments/name/{deployment}")["id"]
        return self.api(f"/deployments/{found}/create_flow_run", {"parameters": parameters})["id"]

    def end_of(self, run: str) -> dict[str, Any]:
        """A flow run when it has ended."""
        final = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
        self._wait(lambda: self.api(f"/flow_runs/{run}")["state_type"] in final)
        return self.api(f"/flow_runs/{run}")

    def _wait(self, condition) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.2)

    def stop(self, how: int) -> bool:
        """Stop it; tells whether every process of it is gone."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert any("flows.guarded" in each.cmdline() for each in family)
        self.process.send_signal(how)
        self.process.wait(PATIENCE)
        _, alive = psutil.wait_procs(family, timeout=30)
        return not alive


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def library(workshop):
    for number in range(3):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount the boards {number + 2} times.\n")
    return workshop


@pytest.fixture
def service(library, tmp_path) -> Iterator[Service]:
    file = tmp_path / "parquetry.toml"
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\nschedule = "0 0 1 1 *"\n'
    file.write_text(f'[corpus]\nroot = "{library.settings.corpus.root}"\n[extraction]\nworkers = 1\n{source}')
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {
        **kept,
        "PREFECT_HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
    }
    output = tmp_path / "output.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "deployments", "--config", str(file), "--port", free_port()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    service = Service(process, output)
    try:
        service.wait_until_ready()
        yield service
    finally:
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            for each in psutil.wait_procs(family, timeout=20)[1]:
                each.kill()


def test_runs_that_are_asked_for_publish_one_after_the_other_and_the_end_is_clean(service, library):
    # Of two runs of a scheduled deployment at once one does the work; the other has nothing to do and is cancelled.
    asked = [service.run("refresh/docs"), service.run("refresh/docs")]
    ended = [service.end_of(run) for run in asked]
    assert sorted(run["state_type"] for run in ended) == ["CANCELLED", "COMPLETED"]
    (cancelled,) = [run for run in ended if run["state_type"] == "CANCELLED"]
    assert "concurrency limit" in cancelled["state"]["message"]
    assert library.lake.snapshot().version == 1
    assert len(library.rows()) == 3

    # Parameters of one's own replace those of the deployment; its settings file stays.
    run = service.end_of(service.run("reindex/on-demand", parameters={"documents": ["0.md", "1.md"]}))
    assert run["state_type"] == "COMPLETED", run["state"]
    assert set(run["tags"]) == {"parquetry", "namespace:default", "source:docs"}
    assert library.lake.snapshot().version == 2
    keys = {each["key"] for each in service.api("/artifacts/filter", {})}
    assert keys == {f"{kind}-{what}-default" for kind in ("refresh", "reindex") for what in ("report", "failures")}

    with urlopen(service.url, timeout=30) as page:
        assert b"<html" in page.read()
    # While a run is at work: it ends as cancelled, and nothing is left.
    busy = service.run("reindex/on-demand", parameters={})
    deadline = time.monotonic() + PATIENCE
    while service.api(f"/flow_runs/{busy}")["state_type"] not in ("PENDING", "RUNNING"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert service.stop(signal.SIGTERM)
    assert service.process.returncode == 0
    output = service.output.read_text()
    assert output.endswith("Stopped.\n")
    assert "Traceback" not in output
    assert "leaked" not in output
