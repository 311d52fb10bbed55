"""The kept state of a table, and its log, which may change at any time."""

from pathlib import Path

import pytest

from parquetry.errors import DamagedCorpus
from parquetry.storage.lake import lake, table_state
from parquetry.storage.lake.staging import CHECKPOINT_EVERY
from parquetry.storage.lake.table_state import state_of
from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["one"]})
    return shelf


@pytest.fixture
def opened(monkeypatch):
    """Return the tables that were opened, in order, and what to do before the next one is."""
    real, tables, before = table_state.open_table, [], []

    def open_table(layout, table):
        if before:
            before.pop()()
        tables.append(table)
        return real(layout, table)

    monkeypatch.setattr(table_state, "open_table", open_table)
    monkeypatch.setattr(table_state, "_kept", {})
    return tables, before


@pytest.fixture
def others(monkeypatch):
    """Commits are those of another program, of which this one takes no note."""
    monkeypatch.setattr(lake, "follow", lambda *_: None)


@pytest.mark.usefixtures("others")
def test_log_is_read_again_only_after_a_commit(shelf, opened):
    tables, _ = opened
    layout = shelf.lake.layout
    first = state_of(layout, "documents")
    assert state_of(layout, "documents") == first
    assert tables == ["documents"]
    shelf.publish({"b.md": ["two"]})
    del tables[:]
    second = state_of(layout, "documents")
    assert (second.version, set(first.files) < set(second.files)) == (first.version + 1, True)
    assert tables == ["documents"]
    assert shelf.texts() == {"a.md": ["one"], "b.md": ["two"]}


@pytest.mark.slow
def test_log_is_not_read_again_after_own_commits(shelf, opened):
    tables, _ = opened
    layout = shelf.lake.layout
    state_of(layout, "documents")
    del tables[:]
    for number in range(3):
        shelf.publish({f"b{number}.md": ["two"]})
        followed = state_of(layout, "documents")
        assert "documents" not in tables
        table_state._kept.clear()
        assert state_of(layout, "documents") == followed
        del tables[:]
    while state_of(layout, "documents").version % CHECKPOINT_EVERY:
        shelf.publish({"c.md": [str(followed.version)]})
        followed = state_of(layout, "documents")
    table_state._kept.clear()
    assert state_of(layout, "documents") == followed


def test_own_commit_after_one_of_another_program_is_read_with_it(shelf, monkeypatch):
    layout = shelf.lake.layout
    first = state_of(layout, "chunks")
    with monkeypatch.context() as others:
        others.setattr(lake, "follow", lambda *_: None)
        shelf.write({"b.md": ["two"]})
    shelf.write({"c.md": ["three"]})
    last = state_of(layout, "chunks")
    assert (last.version, len(last.files)) == (first.version + 2, len(first.files) + 2)


def test_damage_before_an_own_commit_is_told(shelf):
    layout = shelf.lake.layout
    state_of(layout, "documents")
    newest = sorted(Path(layout.log("documents")).glob("*.json"))[-1]
    content = newest.read_bytes()
    shelf.publish({"b.md": ["two"]})
    version = state_of(layout, "documents").version
    newest.write_bytes(content.replace(b"add", b"odd", 1))
    table_state.follow(layout, "documents", version, [])
    with pytest.raises(DamagedCorpus, match=newest.name):
        state_of(layout, "documents")


def test_commit_that_is_damaged_after_it_was_read_is_told(shelf):
    layout = shelf.lake.layout
    state_of(layout, "documents")
    newest = sorted(Path(layout.log("documents")).glob("*.json"))[-1]
    newest.write_bytes(newest.read_bytes().replace(b"add", b"odd", 1))
    with pytest.raises(DamagedCorpus, match=newest.name):
        state_of(layout, "documents")


def test_what_lands_while_a_log_is_read_is_not_kept_for_the_log_before_it(shelf, opened, tmp_path):
    _, before = opened
    log, aside = Path(shelf.lake.layout.log("documents")), tmp_path / "aside"
    aside.mkdir()
    for file in log.iterdir():
        (aside / file.name).hardlink_to(file)
    first = state_of(shelf.lake.layout, "documents")
    table_state._kept.clear()
    before.append(lambda: shelf.publish({"b.md": ["two"]}))
    assert state_of(shelf.lake.layout, "documents").version == first.version + 1
    # The log before it, down to its inodes.
    for file in log.iterdir():
        file.unlink()
    for file in aside.iterdir():
        (log / file.name).hardlink_to(file)
    assert state_of(shelf.lake.layout, "documents") == first
