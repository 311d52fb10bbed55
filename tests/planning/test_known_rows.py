"""Rows are found by path and by content, whatever their hashes."""

from dataclasses import replace

import pytest

from parquetry import ids
from parquetry.planning.known_rows import KnownRows
from tests.records import content_hash, failed, item, row

ROWS = (
    row("a.md", "one", size=3),
    row("b.md", "two", size=4),
    row("c.md", "one", size=3),
    failed("d.md", "one"),
    row("e.md", "one", source="archive", size=3),
)


@pytest.fixture(params=["hashes of their own", "one hash for all"])
def known(request, monkeypatch):
    if request.param == "one hash for all":
        monkeypatch.setattr(ids, "memory_hash", lambda *_: 7)
    elsewhere = [row("f.md", "one", source="other", size=3), row("g.md", "three", source="other", size=9)]
    return KnownRows(ROWS, elsewhere, lambda each: each.source == "docs")


def test_row_of_the_source_is_found_by_its_path(known):
    assert [known.at(path) for path in ("a.md", "b.md", "d.md")] == [ROWS[0], ROWS[1], ROWS[3]]
    assert [known.at(path) for path in ("e.md", "f.md", "unknown.md")] == [None] * 3
    assert known.count == 4


def test_indexed_rows_of_all_sources_are_found_by_their_content(known):
    assert [each.path for each in known.with_content(content_hash("one"), 3)] == ["a.md", "c.md", "e.md", "f.md"]
    assert known.with_content(content_hash("one"), 4) == known.with_content(content_hash("none"), 3) == []
    assert [known.has_size(size) for size in (2, 3, 4, 9, 10)] == [False, True, True, True, False]


def test_what_is_neither_listed_nor_taken_is_left(known):
    known.mark_listed([item("b.md"), item("new.md")])
    assert [each.path for each in known.unlisted()] == ["a.md", "c.md", "d.md"]
    assert [known.is_unlisted(path) for path in ("a.md", "b.md", "e.md", "new.md")] == [True, False, False, False]
    assert [known.take(path) for path in ("c.md", "c.md", "b.md", "e.md")] == [True, False, False, False]
    assert (known.unlisted_count, [each.path for each in known.unlisted()]) == (2, ["a.md", "d.md"])


def test_source_without_rows():
    known = KnownRows((), [], lambda _: True)
    known.mark_listed([item("a.md")])
    assert (known.count, known.at("a.md"), known.has_size(0), known.unlisted_count) == (0, None, False, 0)
    assert known.with_content(content_hash("one"), 3) == []


def test_document_with_two_rows_is_listed_once_and_for_all():
    known = KnownRows((ROWS[0], replace(ROWS[0], title="twice")), [], lambda _: True)
    known.mark_listed([item("a.md")])
    assert known.unlisted_count == 0
