"""Chats in one bucket, and the corpus that learns from them in another: no data of either is on this machine."""

from __future__ import annotations

import pytest

from parquetry.planning.rows import RunStamp
from parquetry.storage.entries.undoing import undo_decision
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.lake.answers import Answers
from parquetry.storage.maintenance.erasure import forget_user
from tests.records import NOW
from tests.sessions_shelf import Shelf

SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
BELT = "Saw: its belt is checked on Mondays."


@pytest.fixture
def shelf(s3_server, server, monkeypatch, tmp_path):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shelf = Shelf(tmp_path, server.url)
    shelf.source["uri"] = f"s3://{s3_server.bucket('chats')}"
    shelf.sections["corpus"] = {"root": f"s3://{s3_server.bucket('knowledge')}/kb"}
    return shelf


def put(server, shelf, name, said):
    """Put a session into the bucket."""
    server.put(shelf.source["uri"].removeprefix("s3://"), name, shelf.write(name, said).read_bytes())


def kept(folder):
    """Return the answers in a folder; the server keeps listing the folder itself when it is empty."""
    return [entry.name for entry in filesystem_at(folder).entries(folder) if entry.name.endswith(".json")]


def test_sessions_in_a_bucket_teach_a_corpus_in_a_bucket(s3_server, shelf):
    put(s3_server, shelf, "a.json", [f"public/fact: {SAW}"])
    assert (shelf.learn().calls, shelf.live()) == (1, [SAW])
    assert not (shelf.root / "corpus").exists()
    again = shelf.learn()
    assert (again.calls, again.sessions["unchanged"], again.version) == (0, 1, 1)

    put(s3_server, shelf, "b.json", [f"public/fact: {BELT}"])
    merged = shelf.learn()
    assert (merged.entries["merged"], shelf.live()) == (1, [f"{SAW} {BELT}"])
    (decision,) = [each for each in merged.decisions if each.kind == "merged"]
    undo_decision(shelf.lake, decision.decision_id, RunStamp("undo-1", NOW))
    assert shelf.live() == [SAW]


def test_answer_that_was_kept_in_a_bucket_is_not_paid_for_again(s3_server, shelf):
    put(s3_server, shelf, "a.json", [f"public/fact: {SAW}"])
    shelf.learn()
    shelf.sections["corpus"] = {"root": shelf.settings.corpus.root, "namespace": "second"}
    again = shelf.learn()
    assert (again.calls, again.cached, again.entries["new"]) == (0, 1, 1)


def test_forgotten_user_leaves_no_answer_in_the_bucket(s3_server, shelf):
    put(s3_server, shelf, "a.json", [f"individual/fact: {SAW}"])
    shelf.learn()
    folder = Answers(shelf.lake.layout).folder("ada")
    assert len(kept(folder)) == 1
    forget_user(shelf.lake, "ada", RunStamp("20310301T093000-0a0b0c0d", NOW), shelf.settings.search)
    assert kept(folder) == []
    assert shelf.live() == []
