"""`python -m parquetry.deployments` as operators run it, and its API as they use it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from parquetry.deployments.__main__ import _home
from tests.prefect_homes import fill_home
from tests.product_modules import ROOMS

PATIENCE = 400
"""maximum seconds for any step on a busy machine"""


FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class Api:
    """A Prefect API, used without Prefect's client.

    Args:
        url: URL of the server, without a path.
        check: function that raises if further waiting is useless.
    """

    def __init__(self, url: str, check: Callable[[], None] = lambda: None) -> None:
        self.url, self._check = url, check

    def api(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/api{path}", data, {"Content-Type": "application/json"}, method=method)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(request, timeout=PATIENCE) as reply:
                    return None if reply.status == 204 else json.load(reply)
            except HTTPError as error:
                # The server's reply while its database is busy, which Prefect's own client retries.
                if error.code != 503 or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def run(self, deployment: str, **parameters: Any) -> str:
        """Request a flow run; return its id."""
        found = self.api(f"/deployments/name/{deployment}")["id"]
        return self.api(f"/deployments/{found}/create_flow_run", {"parameters": parameters})["id"]

    def end_of(self, run: str) -> dict[str, Any]:
        """Wait for the end of a flow run; return the run."""
        return self.until(lambda: self._ended(self.api(f"/flow_runs/{run}")))

    def scheduled_run(self, deployment: str) -> dict[str, Any]:
        """Return the first scheduled run of the deployment that has ended, except cancelled ones."""
        return self.until(lambda: next(iter(self.scheduled_runs(deployment)), None))

    def scheduled_runs(self, deployment: str) -> list[dict[str, Any]]:
        """Return the scheduled runs of the deployment that have ended, except cancelled ones, in order."""
        found = self.api(f"/deployments/name/{deployment}")["id"]
        state = {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}
        body = {"deployments": {"id": {"any_": [found]}}, "flow_runs": {"state": state}}
        runs = [run for run in self.api("/flow_runs/filter", body) if run["auto_scheduled"]]
        return sorted(runs, key=lambda run: run["end_time"])

    def publishing_run(self, deployment: str) -> dict[str, Any]:
        """Return the first scheduled run of the deployment that published according to its log."""

        def first() -> dict[str, Any] | None:
            runs = self.scheduled_runs(deployment)
            bad = [run["state"] for run in runs if run["state_type"] != "COMPLETED"]
            assert bad == []
            return next((run for run in runs if any("published" in line for line in self.log(run["id"]))), None)

        return self.until(first)

    def log(self, run: str) -> list[str]:
        """Return the lines of a flow run's log; the last ones arrive a moment after the run's end."""
        body = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"}
        return [each["message"] for each in self.api("/logs/filter", body)]

    def until(self, found: Callable[[], Any], seconds: float = 0.2) -> Any:
        """Wait until a function returns a true value; return that value. It is called every so many seconds."""
        deadline = time.monotonic() + PATIENCE
        while not (result := found()):
            self._check()
            assert time.monotonic() < deadline
            time.sleep(seconds)
        return result

    @staticmethod
    def _ended(run: dict[str, Any]) -> dict[str, Any] | None:
        return run if run["state_type"] in FINAL else None


class Service(Api):
    """A running `python -m parquetry.deployments` and its API."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        super().__init__("", self._is_running)
        self.process, self.output = process, output

    def _is_running(self) -> None:
        assert self.process.poll() is None, self.output.read_text()

    def wait_for(self, line: str) -> None:
        """Wait for the first words of a line, and learn the URL."""
        self.until(lambda: f"\n{line}" in self.output.read_text(), seconds=0.01)
        lines = self.output.read_text().splitlines()
        (self.url,) = [line.partition(": ")[2] for line in lines if line.startswith("Prefect UI: ")]

    def stop(self, how: int) -> bool:
        """Stop it; return True if all its processes are gone."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        assert any("parquetry.flows.orchestration.parent_watch" in each.cmdline() for each in family)
        self.process.send_signal(how)
        self.process.wait(PATIENCE)
        _, alive = psutil.wait_procs(family, timeout=PATIENCE)
        return not alive


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program that works with Prefect, without the user's settings or service delays."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {
        **kept,
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "data"),
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
        **more,
    }


@contextmanager
def serving(settings: str, folder: Path, ready: str = "Serving;", **more: str) -> Iterator[Service]:
    """Serve a settings file, in a folder with foreign packages `flows/`, `tasks/` and `storage/`.

    Args:
        settings: content of the file.
        folder: folder for the file, the server's home and its output.
        ready: first words of the line that is waited for.
        more: environment variables.
    """
    file, output = folder / "parquetry.toml", folder / "output.txt"
    file.write_text(settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", environment(folder, **more)["XDG_DATA_HOME"])
        fill_home(_home(file))
    command = [sys.executable, "-u", "-m", "parquetry.deployments", "--config", str(file), "--port", free_port()]
    with running(command, environment(folder, **more), output, other_repository(folder)) as process:
        service = Service(process, output)
        service.wait_for(ready)
        yield service


def other_repository(folder: Path) -> Path:
    """Create an operator's repository with packages of common names, none of which Parquetry may import."""
    repository = folder / "repository"
    for room in ROOMS[1:]:
        (repository / room).mkdir(parents=True)
        (repository / room / "__init__.py").write_text(f'raise ImportError("{room} is not of Parquetry")\n')
    return repository


@contextmanager
def running(
    command: list[str], environment: dict[str, str], output: Path, folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program that writes to a file; at the end, kill it with all its children if it still runs."""
    with output.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
            for each in psutil.wait_procs(family, timeout=20)[1]:
                each.kill()
