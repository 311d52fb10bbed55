"""Current rows are read as requested: all of them, those of some documents, or those with some contents."""

from dataclasses import replace

import pytest

from parquetry.storage.lake.current import CurrentRows, current_rows
from parquetry.storage.lake.lake import Lake
from tests.records import content_hash, failed, row


@pytest.fixture
def lake(tmp_path):
    """Create a corpus in which one document changed, one was removed and one is in another namespace."""
    lake = Lake(str(tmp_path / "corpus"), create=True)
    before = [row("a.md", "old"), row("b.md", "one"), row("c.md", "gone"), failed("d.md", "one")]
    lake.publish(lake.snapshot(), before, "run-1")
    lake.publish(lake.snapshot(), [row("a.md", "two"), replace(before[2], removed=True)], "run-2")
    lake.publish(lake.snapshot(), [row("a.md", "one", namespace="hr")], "run-3")
    return lake


def places(rows):
    return [(each.namespace, each.path, each.sequence) for each in rows]


def test_each_row_is_there_once_as_it_is_now(lake):
    rows = CurrentRows(lake.snapshot())
    expected = [("default", "a.md", 2), ("default", "b.md", 1), ("default", "d.md", 1), ("hr", "a.md", 1)]
    assert sorted(places(rows.each())) == places(rows.all()) == places(current_rows(lake.snapshot())) == expected


def test_rows_of_named_documents_are_their_current_ones(lake):
    ids = {(each.namespace, each.path): each.document_id for each in CurrentRows(lake.snapshot(version=1)).all()}
    rows = CurrentRows(lake.snapshot(), ["default"])
    assert places(rows.named(ids.values())) == [("default", "a.md", 2), ("default", "b.md", 1), ("default", "d.md", 1)]
    assert places(rows.named([ids["default", "c.md"], "unknown"])) == []
    assert rows.named([]) == []


def test_rows_are_found_by_the_content_that_they_have_now(lake):
    rows = CurrentRows(lake.snapshot(), ["default"])
    assert places(rows.holding([content_hash("one")])) == [("default", "b.md", 1), ("default", "d.md", 1)]
    assert places(rows.holding([content_hash("two"), content_hash("gone")])) == [("default", "a.md", 2)]
    assert rows.holding([content_hash("old")]) == []


def test_only_rows_of_the_namespaces_that_were_asked_for(lake):
    assert places(CurrentRows(lake.snapshot(), ["hr"]).holding([content_hash("one")])) == [("hr", "a.md", 1)]
    assert CurrentRows(lake.snapshot(), []).all() == []


def test_corpus_that_does_not_exist_yet_has_no_rows():
    rows = CurrentRows(None)
    assert (rows.all(), rows.named(["x"]), rows.holding(["x"])) == ([], [], [])
