"""An LLM that fails every session fails the run, and good results are published: no outage is a success."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from parquetry.serving.cli.main import run
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, Reply, error, said
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

DRY = "public/fact: Glue bench: it needs 12 hours to dry."
SAW = "public/fact: Saw: the saw of hall 3 runs at 4200 rpm."
KILN = "public/fact: Kiln: it is fired on Mondays."
DULL = "public/fact: Saw: the saw of hall 3 is sharpened on Fridays."
DOWN = error(503, "out of memory")


class Failing:
    """A model that fails on messages with certain words, or returns invalid replies."""

    def __init__(self) -> None:
        self.fails_over: set[str] = set()
        self.fails_to_compare = False
        self.babbles = False

    def __call__(self, body: Any) -> Reply:
        if self.fails_to_compare and not session_model.is_distilling(body):
            return DOWN
        if any(word in json.dumps(session_model.asked(body)) for word in self.fails_over):
            return DOWN
        return said("Well.") if self.babbles else session_model.answer(body)


@pytest.fixture
def model() -> Failing:
    return Failing()


@pytest.fixture
def shelf(tmp_path, model) -> Iterator[Shelf]:
    with ChatServer(model) as server:
        shelf = Shelf(tmp_path, server.url)
        config = f"""[corpus]
root = "{tmp_path}/corpus"
[llm]
model = "m"
base_url = "{server.url}"
attempts = 1
[refresh]
attempts = 1
[[source]]
name = "chats"
uri = "{tmp_path}/chats"
content = "sessions"
visibility = "public"
[[source]]
name = "others"
uri = "{tmp_path}/others"
content = "sessions"
visibility = "public"
"""
        (tmp_path / "parquetry.toml").write_text(config)
        (tmp_path / "others").mkdir()
        yield shelf


def refreshed(shelf: Shelf, capsys, *options: str) -> tuple[int, Any]:
    """Run a refresh; return the exit code and the report."""
    capsys.readouterr()
    config = str(shelf.root / "parquetry.toml")
    code = run(["sessions", "refresh", "--direct", "--json", "--config", config, *options])
    return code, json.loads(capsys.readouterr().out)


def runs(shelf: Shelf) -> list[tuple[Any, ...]]:
    return shelf.rows("SELECT status, error FROM runs ORDER BY started_at")


def test_a_model_that_fails_every_session_fails_the_run_and_the_next_one_learns(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    shelf.write("b.json", [SAW])
    model.fails_over = {"Glue", "Saw"}
    code, report = refreshed(shelf, capsys)
    assert code == 4
    (outage,) = report["outages"]
    assert outage.startswith("source chats: the language model failed 2 of 2 sessions (service-failed: ")
    assert report["sessions"]["failed"] == 2
    assert runs(shelf) == [("failed", outage)]

    model.fails_over = set()
    code, report = refreshed(shelf, capsys)
    assert (code, report["outages"], report["entries"]["new"]) == (0, [], 2)
    assert [status for status, _ in runs(shelf)] == ["failed", "completed"]


def test_what_was_good_of_another_source_is_published_by_the_run_that_fails(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    shelf.write("../others/b.json", [SAW])
    model.fails_over = {"Glue"}
    code, report = refreshed(shelf, capsys)
    assert code == 4
    assert ["chats" in line for line in report["outages"]] == [True]
    assert shelf.live() == ["Saw: the saw of hall 3 runs at 4200 rpm."]


def test_a_model_that_fails_some_sessions_does_not_fail_the_run(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    shelf.write("b.json", [SAW])
    model.fails_over = {"Glue"}
    code, report = refreshed(shelf, capsys)
    assert (code, report["outages"], report["sessions"]["failed"]) == (0, [], 1)
    assert runs(shelf) == [("completed", None)]


def test_replies_of_no_use_are_no_outage(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    model.babbles = True
    code, report = refreshed(shelf, capsys)
    assert (code, report["outages"], report["entries"]["quarantined"]) == (0, [], 1)
    assert report["refusals"] == {"bad-reply": 1}


def test_a_run_without_anything_new_is_no_outage(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    assert refreshed(shelf, capsys)[0] == 0
    model.fails_over = {"Glue"}
    code, report = refreshed(shelf, capsys)
    assert (code, report["outages"], report["sessions"]["unchanged"]) == (0, [], 1)


def test_sessions_that_could_not_be_compared_are_lost_too(shelf, model, capsys):
    shelf.write("a.json", [SAW])
    assert refreshed(shelf, capsys)[0] == 0
    shelf.write("b.json", [DULL])
    model.fails_to_compare = True
    code, report = refreshed(shelf, capsys)
    assert code == 4
    assert "the language model failed its session" in report["outages"][0]
    assert shelf.live() == ["Saw: the saw of hall 3 runs at 4200 rpm."]


def test_people_are_told_in_a_line(shelf, model, capsys):
    shelf.write("a.json", [DRY])
    model.fails_over = {"Glue"}
    code = run(["sessions", "refresh", "--direct", "--config", str(shelf.root / "parquetry.toml")])
    assert code == 4
    assert "Failed: source chats: the language model failed its session (service-failed: " in capsys.readouterr().out
