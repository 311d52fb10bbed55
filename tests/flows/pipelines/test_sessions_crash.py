"""Runs killed at changes of the corpus, and concurrent runs: nothing is lost, doubled or paid for twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.series import part_of
from tests.servers.chat_server import ChatServer
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

RUNNER = Path(__file__).parent / "session_runner.py"
MOMENTS = 6
"""changes at which a run of the tests kills one"""
FACTS = [f"Hall {number}: it has {number + 3} gates." for number in range(3)]


class Children:
    """Runs in separate processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def learn(self, *shelves: Shelf, event: int | None = None) -> list[dict[str, Any]]:
        told = [
            {"root": str(shelf.root), "url": shelf.url, "source": shelf.source, "sections": shelf.sections}
            for shelf in shelves
        ]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"shelves": told, "event": event}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    process = subprocess.Popen([sys.executable, RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield Children(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    assert process.wait(120) == 0


def filled(root: Path, server: ChatServer) -> Shelf:
    """Three facts, each in two sessions; two statements that are merged into one; one private to a user."""
    shelf = Shelf(root, server.url)
    shelf.write("a.json", [f"public/fact: {fact}" for fact in FACTS], first=1_767_225_600)
    shelf.write("b.json", [f"public/fact: {fact}" for fact in FACTS], first=1_767_325_600)
    shelf.write("c.json", ["public/fact: Saw: it is loud.", "individual/fact: Tea: it is green."], first=1_767_425_600)
    shelf.write("d.json", ["public/fact: Saw: it is sharp."], first=1_767_525_600)
    return shelf


def questions(server: ChatServer) -> Counter[str]:
    """Count how often each question was asked."""
    return Counter(json.dumps(body["messages"]) for body in server.bodies)


LIVE = sorted([*FACTS, "Saw: it is loud. Saw: it is sharp.", "Tea: it is green."])


def test_killed_at_a_change_of_the_corpus_and_run_again(tmp_path, server, children):
    """Only answers not yet on disk are requested again."""
    (undisturbed,) = children.learn(filled(tmp_path / "whole", server))
    assert undisturbed["report"]["entries"]["merged"] == 1
    asked = len(server.bodies)
    assert undisturbed["changes"] > 20
    killed = 0
    moments = part_of(range(1, undisturbed["changes"] + 1), MOMENTS)
    for event in moments:
        shelf = filled(tmp_path / f"{event}", server)
        server.bodies.clear()
        (crashed,) = children.learn(shelf, event=event)
        # Two threads create folders, so the number of those that already exist varies.
        assert crashed["killed"] or undisturbed["changes"] - 10 < crashed["changes"] < event
        killed += crashed["killed"]
        kept = len(list((shelf.root / "corpus" / "answers").rglob("*.json")))
        paid = len(server.bodies)
        assert kept <= paid <= kept + shelf.settings.sessions.workers
        children.learn(shelf)
        assert len(server.bodies) - paid == asked - kept, event
        assert shelf.live() == LIVE, event
        said = shelf.rows("SELECT count(*) FROM decisions WHERE kind IN ('new', 'existing', 'merged')")
        assert said == [(9,)], event
    assert killed >= len(moments) - 1


def test_eight_runs_side_by_side_with_the_same_facts_leave_one_entry_for_each(tmp_path, server, children):
    """Each run has its own sessions in its own source; all contain the same statements with the same visibility."""
    shelves = []
    for number in range(8):
        shelf = Shelf(tmp_path / f"{number}", server.url)
        shelf.sections["corpus"] = {"root": str(tmp_path / "corpus")}
        shelf.source |= {"name": f"chats-{number}", "user_id": f"user-{number}"}
        shelf.write("a.json", [f"public/fact: {fact}" for fact in FACTS])
        shelf.write("b.json", ["individual/fact: Tea: it is green."])
        shelves.append(shelf)
    ended = children.learn(*shelves)
    assert not any(each["killed"] for each in ended)
    entries = [each["report"]["entries"] for each in ended]
    assert sum(each["new"] for each in entries) == len(FACTS) + 8
    assert sum(each["existing"] for each in entries) == 7 * len(FACTS)
    assert shelves[0].live() == sorted([*FACTS, *("Tea: it is green." for _ in range(8))])
    traced = shelves[0].rows(
        """SELECT e.text, count(DISTINCT d.session_uri), min(len(d.evidence)) FROM entries AS e
        JOIN decisions AS d ON d.entry_id = e.entry_id WHERE e.visibility = 'public' GROUP BY ALL ORDER BY 1"""
    )
    assert traced == [(fact, 8, 1) for fact in sorted(FACTS)]


def test_runs_side_by_side_over_the_same_sessions_record_them_once(tmp_path, server, children):
    shelf = filled(tmp_path, server)
    ended = children.learn(*(shelf for _ in range(4)))
    assert not any(each["killed"] for each in ended)
    assert shelf.live() == LIVE
    assert sum(each["report"]["sessions"]["new"] for each in ended) == 4
    assert shelf.rows("SELECT count(*) FROM decisions") == [(9,)]
    # Stored answers are shared; an answer still pending may be requested by several runs.
    assert max(questions(server).values()) <= 4
