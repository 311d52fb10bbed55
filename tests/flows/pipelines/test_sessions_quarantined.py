"""Quarantined windows are retried on request, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from parquetry.model import SESSION_TYPE, DocumentRow
from parquetry.storage.lake.current import current_rows
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, Reply, error, said
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

DRY = "Glue bench: it needs 12 hours to dry."
SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
KILN = "Kiln: it is fired on Mondays."
LONG = "We spoke of nothing in particular. " * 40


class Moody:
    """A model that returns invalid replies to messages with certain words."""

    def __init__(self) -> None:
        self.dislikes: set[str] = set()
        self.down = False

    def __call__(self, body: Any) -> Reply:
        if self.down:
            return error(503, "down")
        told = json.dumps(session_model.asked(body).get("messages", []))
        if any(word in told for word in self.dislikes):
            return said("I would rather not.")
        return session_model.answer(body)


@pytest.fixture
def model() -> Moody:
    return Moody()


@pytest.fixture
def server(model) -> Iterator[ChatServer]:
    with ChatServer(model) as running:
        yield running


@pytest.fixture
def shelf(tmp_path, server) -> Shelf:
    shelf = Shelf(tmp_path, server.url)
    shelf.sections["sessions"] = {"window_characters": 2000, "workers": 1}
    return shelf


def sessions(shelf: Shelf) -> list[DocumentRow]:
    rows = current_rows(shelf.lake.snapshot(), what="knowledge")
    return [row for row in rows if row.media_type == SESSION_TYPE]


def quarantined(shelf: Shelf) -> dict[str, object]:
    return {row.path: row.metadata.get("quarantined") for row in sessions(shelf)}


def test_only_the_part_that_was_quarantined_is_asked_about_again(shelf, server, model):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {DRY}", LONG, f"public/fact: {SAW}", LONG])
    shelf.write("b.json", [f"public/fact: {KILN}"])
    report = shelf.learn()
    assert (report.entries["new"], report.entries["quarantined"]) == (2, 1)
    assert list(quarantined(shelf)) == ["a.json!/", "b.json!/"]
    assert quarantined(shelf)["b.json!/"] is None
    model.dislikes = set()
    asked = len(server.bodies)
    assert shelf.learn().calls == 0

    report = shelf.learn(retry_quarantined=True)
    assert report.sessions == {"scanned": 2, "new": 0, "grown": 0, "retried": 1, "unchanged": 1, "failed": 0}
    assert (report.calls, report.entries["new"], report.entries["existing"]) == (1, 1, 0)
    assert shelf.live() == sorted([DRY, SAW, KILN])
    (body,) = server.bodies[asked:]
    shown = session_model.asked(body)
    assert f"public/fact: {SAW}" in [message["text"] for message in shown["messages"]]
    assert f"public/fact: {DRY}" not in [message["text"] for message in shown["messages"]]
    assert set(quarantined(shelf).values()) == {None}
    run = f"SELECT scanned, added, changed, unchanged FROM runs WHERE run_id = '{report.run_id}'"
    assert shelf.rows(run) == [(2, 0, 1, 1)]

    report = shelf.learn(retry_quarantined=True)
    assert (report.calls, report.version, report.sessions["unchanged"]) == (0, report.version_before, 2)


def test_plan_tells_what_asking_again_would_cost(shelf, server, model):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {DRY}", LONG, f"public/fact: {SAW}", LONG])
    shelf.learn()
    assert shelf.plan().as_json()["to_read"] == []
    plan = shelf.plan(retry_quarantined=True)
    assert [each["change"] for each in plan.as_json()["to_read"]] == ["retried"]
    assert (plan.estimate.windows, plan.estimate.kept) == (1, 0)
    assert plan.counts["retried"] == 1


def test_what_is_of_no_use_again_stays_quarantined_and_is_asked_about_the_next_time(shelf, server, model):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    before = quarantined(shelf)
    report = shelf.learn(retry_quarantined=True)
    # One request, and one retry with the error.
    assert (report.calls, report.entries["quarantined"]) == (2, 1)
    assert quarantined(shelf) == before
    model.dislikes = set()
    assert shelf.learn(retry_quarantined=True).entries["new"] == 1
    assert shelf.live() == [SAW]


def test_session_that_grows_keeps_what_was_quarantined_of_it(shelf, server, model):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    model.dislikes = set()
    shelf.write("a.json", [f"public/fact: {SAW}", f"public/fact: {DRY}"])
    assert shelf.learn().sessions["grown"] == 1
    assert shelf.live() == [DRY]
    shelf.write("a.json", [f"public/fact: {SAW}", f"public/fact: {DRY}", f"public/fact: {KILN}"])
    report = shelf.learn(retry_quarantined=True)
    assert (report.sessions["grown"], report.entries["new"], report.calls) == (1, 2, 2)
    assert shelf.live() == sorted([DRY, SAW, KILN])
    assert set(quarantined(shelf).values()) == {None}


@pytest.mark.parametrize("retry", [True, False])
def test_session_whose_beginning_changed_is_read_as_a_whole_and_owes_nothing(shelf, model, retry):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    shelf.write("a.json", [f"public/fact: {KILN}"])
    report = shelf.learn(retry_quarantined=retry)
    assert (report.sessions["new"], shelf.live()) == (1, [KILN])
    assert set(quarantined(shelf).values()) == {None}


def test_model_that_cannot_be_reached_leaves_it_quarantined(shelf, server, model):
    model.dislikes = {"4200"}
    shelf.write("a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    before = quarantined(shelf)
    model.dislikes, model.down = set(), True
    report = shelf.learn(retry_quarantined=True)
    assert (report.sessions["failed"], report.sessions["retried"]) == (1, 0)
    assert quarantined(shelf) == before
    assert [row.status for row in sessions(shelf)] == ["failed"]
    model.down = False
    report = shelf.learn()
    assert (report.sessions["failed"], report.calls) == (0, 0)
    assert quarantined(shelf) == before
    assert [row.status for row in sessions(shelf)] == ["indexed"]
    assert shelf.learn(retry_quarantined=True).sessions["retried"] == 1
    assert shelf.live() == [SAW]
