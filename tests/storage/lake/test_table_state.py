"""The kept state of a table, and its log, which may change at any time."""

from pathlib import Path

import pytest

from parquetry.errors import DamagedCorpus
from parquetry.storage.lake import table_state
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
