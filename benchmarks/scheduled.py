"""Memory of runs that `python -m parquetry.deployments` starts: each is a process of Prefect's, with its children.

    python -m benchmarks.scheduled FOLDER [--before CHECKOUT]

Each repetition serves a new corpus of the folder and asks for two runs: everything new, then nothing changed. The
service and Prefect's server are not counted: they are there once, for all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen
from uuid import uuid4

import psutil

from benchmarks.conditions import conditions, wait_until_idle, write_result
from benchmarks.process_tree import SAMPLE_SECONDS, ProcessTree

STEPS = ("full", "unchanged")
PACKAGES = ("parquetry", "prefect", "pyarrow", "duckdb")
_RUN = "PREFECT__FLOW_RUN_ID"
_PATIENCE = 900
"""seconds for a service to be ready, or for a run"""
_HERE = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    checkouts = {"parquetry": _HERE, **({"before": options.before.absolute()} if options.before else {})}
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {step: [] for step in STEPS} for name in checkouts}
    for repetition in range(options.repetitions):
        for name, checkout in checkouts.items():
            with tempfile.TemporaryDirectory(prefix="scheduled-benchmark-", dir=options.scratch) as scratch:
                wait_until_idle(options.max_load)
                with _service(checkout, options.folder.absolute(), Path(scratch)) as (service, url):
                    for step in STEPS:
                        runs[name][step].append(_run(service, url))
                        print(f"{repetition + 1}: {name:<10} {step:<10} {runs[name][step][-1]}", flush=True)
    result = {"conditions": conditions(PACKAGES), "runs": runs}
    print(f"written to {write_result('scheduled', result, options.results)}")
    return result


@contextmanager
def _service(checkout: Path, folder: Path, scratch: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a folder; yield the service and the URL of its API."""
    settings = scratch / "parquetry.toml"
    settings.write_text(f'[corpus]\nroot = "{scratch / "corpus"}"\n[[source]]\nname = "docs"\nuri = "{folder}"\n')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PYTHONDONTWRITE"))}
    homes = {"PREFECT_HOME": str(scratch / "home"), "XDG_DATA_HOME": str(scratch / "data"), "DO_NOT_TRACK": "1"}
    command = [sys.executable, "-m", "parquetry.deployments", "--config", str(settings), "--port", port]
    with (scratch / "output.txt").open("w") as output:
        service = subprocess.Popen(
            command, cwd=scratch, env={**kept, **homes, "PYTHONPATH": str(checkout)}, stdout=output, stderr=output
        )
    try:
        url = f"http://127.0.0.1:{port}/api"
        _until(lambda: "Serving;" in (scratch / "output.txt").read_text(), service)
        yield service, url
    finally:
        service.terminate()
        service.wait(_PATIENCE)


def _run(service: subprocess.Popen[bytes], url: str) -> dict[str, float]:
    """Ask for a run and measure its process with its children.

    Raises:
        RuntimeError: it did not complete.
    """
    load = os.getloadavg()[0]
    deployment = _until(lambda: _api(f"{url}/deployments/name/refresh/on-demand")["id"], service)
    # Asked for again, it is the same run.
    order = {"idempotency_key": str(uuid4())}
    run = _until(lambda: _api(f"{url}/deployments/{deployment}/create_flow_run", order)["id"], service)
    process = _until(lambda: _process_of(service, run), service)
    tree, started = ProcessTree(process), time.perf_counter()
    while tree.is_running():
        tree.look()
        time.sleep(SAMPLE_SECONDS)
    wall = time.perf_counter() - started
    state = _until(lambda: _final(_api(f"{url}/flow_runs/{run}")["state_type"]), service)
    if state != "COMPLETED":
        raise RuntimeError(f"the run ended as {state}")
    return {
        "wall_seconds": round(wall, 1),
        "processor_seconds": round(tree.processor_seconds, 1),
        "peak_pss_mb": tree.peak_pss_mb,
        "load_before": round(load, 2),
    }


def _final(state: str) -> str | None:
    return None if state in ("SCHEDULED", "PENDING", "RUNNING", "CANCELLING") else state


def _process_of(service: subprocess.Popen[bytes], run: str) -> int | None:
    for process in psutil.Process(service.pid).children(recursive=True):
        try:
            if process.environ().get(_RUN) == run:
                return process.pid
        except psutil.Error:
            continue
    return None


def _api(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=60) as reply:
        return json.load(reply)


def _until(found: Any, service: subprocess.Popen[bytes]) -> Any:
    """Wait until a function returns a true value; return that value."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            if value := found():
                return value
        except URLError:
            # The server answers while its database is busy.
            pass
        if service.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the service ended, or did not do in time what it was asked for")
        time.sleep(0.1)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scheduled", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="a folder of documents")
    parser.add_argument("--before", type=Path, help="checkout of another version, for the same environment")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--max-load", type=float, help="wait before each service until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where corpora and the servers' databases go")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
