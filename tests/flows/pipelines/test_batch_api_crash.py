"""Runs that use the batch API and are killed at any moment, and runs at the same time: nothing is bought twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.flows.pipelines.batch_workshop import TEXTS, WORDS, age, check_all_is_there, records
from tests.servers.batch_server import BatchServer
from tests.workshop import Workshop

pytestmark = pytest.mark.slow


class Runner:
    """A process that refreshes workshops in forked children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("crash_runner.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self, workshop: Workshop, **moment: object) -> None:
        """Start a refresh in a child."""
        told = {"root": str(workshop.root), "sections": workshop.sections, **moment}
        assert self._process.stdin is not None
        print(json.dumps(told), file=self._process.stdin, flush=True)

    def ended(self) -> dict[str, object]:
        """Return what became of the child."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def kill_child(self) -> None:
        """Kill the child that is in work."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(60) == 0


@pytest.fixture(scope="module")
def runners():
    found = [Runner(), Runner()]
    yield found
    for runner in found:
        runner.close()


def made(root: Path, server: BatchServer, **batch_api: object) -> Workshop:
    workshop = Workshop(root)
    workshop.sections |= {
        "corpus": {"embedder": "openai:m"},
        "embedding": {"base_url": server.url, "api_key": "x", "dimension": 8, "attempts": 1},
        "batch_api": {"embedding": "always", **batch_api},
        "refresh": {"attempts": 1},
    }
    for word, text in zip(WORDS, TEXTS, strict=True):
        workshop.write(f"{word}.md", text)
    return workshop


def finish(workshop: Workshop, server: BatchServer) -> None:
    """Refresh as often as it takes, eleven minutes apart, with all batches completed in between."""
    for _ in range(4):
        if (Path(workshop.settings.corpus.root) / "batches").is_dir():
            age(workshop)
        report = workshop.refresh()
        server.complete()
        if report.error is None:
            return
    raise AssertionError(report)


def test_run_killed_at_any_request_to_the_service_buys_nothing_twice(runners, tmp_path):
    """Each request is one that the service carries out, and of which the run hears nothing."""
    runner = runners[0]
    killed = 0
    for number in range(1, 40):
        with BatchServer() as server:
            workshop = made(tmp_path / str(number), server, wait_minutes=1, poll_seconds=0.01)
            server.ends_at_once = True
            seen = 0

            def after(method, path, server=server):
                nonlocal seen
                seen += 1
                if seen == number:  # noqa: B023 - the server ends with the turn of the loop
                    runner.kill_child()

            server.after = after
            runner.begin(workshop)
            told = runner.ended()
            server.after = lambda _, __: None
            killed += told["killed"]
            finish(workshop, server)
            check_all_is_there(workshop, server)
        if not told["killed"]:
            break
    assert killed >= 5


def test_run_killed_at_any_change_of_the_record_buys_nothing_twice(runners, tmp_path):
    """Between the claim, the decision to send, the submission, the record of it, the results and the end."""
    runner = runners[0]
    killed = 0
    for event in range(1, 40):
        with BatchServer() as server:
            workshop = made(tmp_path / str(event), server, wait_minutes=1, poll_seconds=0.01)
            server.ends_at_once = True
            runner.begin(workshop, event=event, below="batches")
            told = runner.ended()
            killed += told["killed"]
            finish(workshop, server)
            check_all_is_there(workshop, server)
        if not told["killed"]:
            break
    assert killed >= 8


def test_run_killed_while_its_batch_is_half_done_is_taken_over_by_the_next(runners, tmp_path):
    with BatchServer() as server:
        workshop = made(tmp_path, server, wait_minutes=5, poll_seconds=0.01)
        asked = threading.Event()

        def after(method, path):
            if (method, path) == ("GET", "/v1/batches/batch-1"):
                server.batches[0].status = "in_progress"
                server.answer(server.batches[0], 3)
                asked.set()

        server.after = after
        runners[0].begin(workshop)
        assert asked.wait(60)
        runners[0].kill_child()
        assert runners[0].ended()["killed"]
        server.after = lambda _, __: None
        assert [len(batch.claim.items) for batch in records(workshop).open()] == [6]
        server.complete()
        report = workshop.refresh()
        assert (report.error, report.documents.added, len(server.batches)) == (None, 6, 1)
        check_all_is_there(workshop, server)


def test_two_processes_at_once_send_every_text_once(runners, tmp_path):
    with BatchServer() as server:
        workshop = made(tmp_path, server)
        for runner in runners:
            runner.begin(workshop)
        assert [runner.ended()["killed"] for runner in runners] == [False, False]
        sent = Counter(line["body"]["input"] for batch in server.batches for line in batch.lines)
        assert sent == Counter(TEXTS)
        server.complete()
        for runner in runners:
            runner.begin(workshop)
        assert [runner.ended()["killed"] for runner in runners] == [False, False]
        finish(workshop, server)
        check_all_is_there(workshop, server)
