"""Learning from sessions as a flow run, against a real Prefect server: its traces in the UI, and a user's answer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from prefect.exceptions import Pause
from prefect.types.entrypoint import EntrypointType

from parquetry.flows.orchestration import session_review
from parquetry.flows.orchestration.parameters import SessionsParameters
from parquetry.flows.sessions import run_sessions_request, sessions
from parquetry.serving.cli.progress import Observer
from parquetry.sessions.report import SessionsReport
from parquetry.storage.lake.lake import Lake
from tests.servers.chat_server import ChatServer, error, said
from tests.sessions_shelf import Shelf

DRY = "Glue bench: it needs 12 hours to dry."
CLOSED = "Glue bench: it is closed on Fridays."
TEA = "Tea: I drink green tea in the morning."


@pytest.fixture
def shelf(tmp_path, server) -> Shelf:
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"public/fact: {DRY}", f"individual/preference: {TEA}"], first=1_767_225_600)
    shelf.write("b.json", [f"public/fact: {CLOSED}"], first=1_767_325_600)
    return shelf


def root(shelf: Shelf) -> str:
    return shelf.settings.corpus.root


def learn(shelf: Shelf, review: Any = None, **options: Any) -> SessionsReport:
    return run_sessions_request(shelf.request(**options), Observer(), review)


def test_flow_run_publishes_and_tells_what_it_learned(shelf, records, lines):
    shelf.sections["sessions"] = {"batch_sessions": 1}
    report = learn(shelf, retry_quarantined=True)
    assert (report.entries["new"], report.entries["merged"]) == (2, 1)
    run = records.flow_run(root(shelf))
    assert run.state.is_completed()
    asked = run.parameters["parameters"]
    assert (asked["retry_quarantined"], asked["review"], asked["targets"]) == (True, False, [])
    assert re.fullmatch(r"sessions-all-\d{8}-\d{6}", run.name)
    assert set(run.tags) == {"parquetry", "namespace:default", "source:chats"}
    assert [each["name"] for each in records.task_runs(run, 2)] == ["batch-0", "batch-1"]

    artifacts = records.artifacts(run)
    names = ("report", "learned", "refused", "progress", "sources")
    assert set(artifacts) == {f"sessions-{name}-default" for name in names}
    (row,) = json.loads(artifacts["sessions-sources-default"])
    assert row == {"namespace": "default", "source": "chats", "to do": 2, "done": 2, "failed": 0}
    assert "| merged | 1 |" in artifacts["sessions-report-default"]
    learned = json.loads(artifacts["sessions-learned-default"])
    assert {each["text"] for each in learned} == {DRY, CLOSED, "(not shown here)"}
    assert TEA not in "".join(map(str, artifacts.values()))
    assert TEA not in "".join(lines.messages)
    assert "2 scanned, 2 new, in 2 batches" in lines.messages


class Person:
    """Answer a flow run as soon as it waits."""

    def __init__(self, records: Any, shelf: Shelf, answer: Callable[[str], list[str]]) -> None:
        self._records, self._shelf, self._answer = records, shelf, answer
        self.seen: list[str] = []

    def wait(self, over: threading.Event) -> None:
        from prefect.flow_runs import resume_flow_run
        from prefect.input.actions import read_flow_run_input

        while not over.wait(0.05):
            for run in self._records.flow_runs(root(self._shelf)):
                if not run.state.is_paused():
                    continue
                keyset = run.state.state_details.run_input_keyset
                told = read_flow_run_input(key=keyset["description"], flow_run_id=run.id)
                self.seen.append(told)
                resume_flow_run(run.id, run_input={"rejected": self._answer(told)})


@pytest.fixture
def config(shelf, tmp_path) -> str:
    file = tmp_path / "parquetry.toml"
    file.write_text(
        f"""[corpus]
root = "{root(shelf)}"
[llm]
model = "m"
base_url = "{shelf.url}"
[[source]]
name = "chats"
uri = "{shelf.folder}"
content = "sessions"
visibility = "public"
user_id = "ada"
org_id = "acme"
"""
    )
    return str(file)


@pytest.mark.parametrize("rejects", [False, True], ids=["merge-approved", "merge-rejected"])
def test_run_that_waits_for_a_person_goes_on_with_the_answer(shelf, config, records, monkeypatch, rejects):
    monkeypatch.setattr(session_review, "POLL_SECONDS", 0.05)
    person = Person(records, shelf, lambda told: re.findall(r"## `(\w+)`", told) if rejects else [])
    over = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(person.wait, over)
        try:
            told = sessions(SessionsParameters(review=True), config=config, corpus=root(shelf))
        finally:
            over.set()
        waiting.result(30)
    (seen,) = person.seen
    assert f"- learned: {CLOSED}" in seen
    assert f"- replaces: {DRY}" in seen
    assert told["entries"]["merged"] == (0 if rejects else 1)
    assert shelf.live() == sorted([TEA, *([DRY, CLOSED] if rejects else [f"{DRY} {CLOSED}"])])


@pytest.mark.usefixtures("prefect_api")
def test_run_of_a_deployment_asks_again_about_what_was_quarantined(shelf, server, config):
    with ChatServer(lambda _: said("I would rather not.")) as useless:
        shelf.url = useless.url
        assert shelf.learn().entries["quarantined"] == 2
    told = sessions(SessionsParameters(retry_quarantined=True), config=config, corpus=root(shelf))
    assert (told["sessions"]["retried"], told["sessions"]["failed"]) == (2, 0)
    assert shelf.live() == sorted([TEA, f"{DRY} {CLOSED}"])


def test_run_of_a_deployment_is_suspended_and_begins_again_with_the_answer(shelf, server, config, records):
    """The process ends while the run waits; the model is not asked a second time."""
    from prefect.flow_engine import run_flow
    from prefect.flow_runs import resume_flow_run

    deployment = sessions.to_deployment(name="reviewed", entrypoint_type=EntrypointType.MODULE_PATH).apply()
    parameters = {"parameters": {"review": True}, "config": config, "corpus": root(shelf)}
    created = records.client.create_flow_run_from_deployment(deployment, parameters=parameters)
    with pytest.raises(Pause):
        run_flow(sessions, flow_run=created, return_type="state")
    waiting = records.client.read_flow_run(created.id)
    assert waiting.state.name == "Suspended"
    assert not Lake.exists(root(shelf))
    asked = len(server.bodies)

    resume_flow_run(created.id, run_input={"rejected": []})
    run_flow(sessions, flow_run=records.client.read_flow_run(created.id), return_type="state")
    assert records.client.read_flow_run(created.id).state.is_completed()
    assert shelf.live() == sorted([TEA, f"{DRY} {CLOSED}"])
    assert len(server.bodies) == asked


def test_a_model_that_fails_every_session_fails_the_flow_run_with_its_report(tmp_path, records, lines):
    with ChatServer(lambda _: error(503, "out of memory")) as down:
        shelf = Shelf(tmp_path, down.url)
        shelf.write("a.json", [f"public/fact: {DRY}"])
        report = learn(shelf)
    (outage,) = report.outages
    assert "the language model failed its session (service-failed: " in outage
    flow_run = records.flow_run(root(shelf))
    assert flow_run.state.is_failed()
    assert outage in flow_run.state.message
    assert f"failed: {outage}" in lines.messages
    assert f"**Failed:** {outage}" in records.artifacts(flow_run)["sessions-report-default"]
