"""`parquetry refresh` as users and schedulers run it: exit codes, silence, and processes left running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from parquetry.flows.local import _keeping_interrupts

pytestmark = pytest.mark.slow

PATIENCE = 120
"""maximum seconds for any step on a busy machine"""


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """An environment without the machine's Prefect settings, and with a separate cache."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {**kept, "PREFECT_HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def library(workshop):
    workshop.write("rule.md", "# Rule\n\nCount the boards.\n")
    return workshop


def command(library, *arguments: str) -> list[str]:
    root = library.settings.corpus.root
    return [
        sys.executable,
        "-m",
        "parquetry.serving.cli.main",
        "refresh",
        str(library.folder),
        "--corpus",
        root,
        *arguments,
    ]


def parquetry(library, environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(library, *arguments),
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


def start(library, environment) -> subprocess.Popen[str]:
    """Start a refresh with its own server."""
    return subprocess.Popen(
        command(library),
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def server_of(process: subprocess.Popen[str]) -> psutil.Process:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children(recursive=True):
            if "parquetry.flows.orchestration.parent_watch" in child.cmdline():
                return child
        time.sleep(0.05)
    raise AssertionError("no server was started")


def all_gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    return not alive


def test_only_a_server_that_lasts_hears_heartbeats(environment, prefect_api):
    """A run's own server drops them, and a run that sends some waits for their thread at its end: up to a second."""
    script = """
from parquetry.flows.local import _prefect
with _prefect(verbose=False) as alone:
    from prefect.settings import get_current_settings
    print(alone, get_current_settings().flows.heartbeat_frequency)
"""
    told = [
        subprocess.run(
            [sys.executable, "-c", script], env={**environment, **api}, capture_output=True, text=True, check=True
        ).stdout
        for api in ({}, {"PREFECT_API_URL": prefect_api})
    ]
    assert told == ["True None\n", "False 30\n"]


def test_two_refreshes_without_a_server_at_once_both_end_well_and_silently(library, environment):
    runs = [start(library, environment) for _ in range(2)]
    servers = [server_of(run) for run in runs]
    outputs = [run.communicate(timeout=PATIENCE) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert [errors for _, errors in outputs] == ["", ""]
    assert all("1 document in" in output for output, _ in outputs)
    assert len(library.rows()) == 1
    assert all_gone(servers)


def test_killed_refresh_leaves_no_process(library, environment):
    run = start(library, environment)
    server = server_of(run)
    family = [server, *server.children(recursive=True)]
    run.kill()
    run.communicate()
    assert all_gone(family)


def test_interrupted_refresh_stops_its_server_and_says_so(library, environment):
    run = start(library, environment)
    server = server_of(run)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert errors.startswith("parquetry: interrupted")
    assert len(errors.splitlines()) == 1
    assert all_gone([server])


def test_refresh_with_a_configured_api_is_a_run_there(library, environment, prefect_api, records):
    for number in range(30):
        library.write(f"{number}.md", f"# Rule {number}\n\nMeasure twice.\n")
    environment["PREFECT_API_URL"] = prefect_api
    done = parquetry(library, environment, "-v")
    assert done.returncode == 0
    assert "published version 1" in done.stderr
    run = records.flow_run(library.settings.corpus.root)
    assert re.fullmatch(r"refresh-docs-\d{8}-\d{6}", run.name)
    assert run.state.is_completed()

    for number in range(30):
        (library.folder / f"{number}.md").unlink()
    refused = parquetry(library, environment)
    assert refused.returncode == 3
    assert "--allow-removals" in refused.stdout + refused.stderr
    assert records.flow_runs(library.settings.corpus.root)[0].state.is_failed()


def test_wrong_use_is_refused_before_a_server_is_started(library, environment):
    library.folder = library.folder / "missing"
    done = parquetry(library, environment)
    assert done.returncode == 2
    assert "missing" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not Path(environment["XDG_CACHE_HOME"]).exists()


def test_file_in_the_place_of_the_corpus_is_refused_with_2(library, environment, prefect_api):
    Path(library.settings.corpus.root).write_text("a file where a folder should be")
    environment["PREFECT_API_URL"] = prefect_api
    done = parquetry(library, environment)
    assert done.returncode == 2
    assert done.stderr.startswith("parquetry: ")
    assert "a corpus is a folder" in done.stderr
    assert "Traceback" not in done.stderr


def swallowing_library() -> None:
    with suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE)


def library_that_is_locked() -> None:
    """Python cannot raise an exception in a weakref callback, and would print it."""

    class Lock:
        pass

    lock = Lock()
    kept = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
    del lock
    assert kept() is None


@pytest.mark.parametrize("library", [swallowing_library, library_that_is_locked])
def test_interrupt_that_an_import_swallows_is_heeded(library, capfd):
    """Libraries catch all exceptions while they probe for installed packages."""
    # Tests that run in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), _keeping_interrupts():
            library()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert capfd.readouterr() == ("", "")
    finally:
        signal.signal(signal.SIGINT, before)
