"""Pooled searchers: acquired by one search at a time, discarded after an error, never reused with other filters."""

from __future__ import annotations

import duckdb
import pytest

from parquetry.serving.search import searchers as searchers_module
from parquetry.serving.search.searchers import Searchers
from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.searcher import Searcher
from tests.storage.shelf import Shelf


@pytest.fixture
def opened(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["oak table"], "b.md": ["elm chair"]})
    snapshot = shelf.lake.snapshot()
    opened = IndexFolder(snapshot.layout, shelf.settings).open(snapshot)
    yield opened
    opened.close()


@pytest.fixture
def searchers():
    searchers = Searchers(SearchSettings(language="none"))
    yield searchers
    searchers.close()


def test_searcher_is_used_again_for_the_same_filters(searchers, opened):
    with searchers.acquire(opened, Filters(filename="a*")) as first:
        pass
    with searchers.acquire(opened, Filters(filename="b*")) as other:
        assert [hit.row["filename"] for hit in other.search("oak elm", {}, "text", 5)] == ["b.md"]
    with searchers.acquire(opened, Filters(filename="a*")) as again:
        assert again is first
        assert [hit.row["filename"] for hit in again.search("oak elm", {}, "text", 5)] == ["a.md"]


def test_callers_never_share_a_searcher(searchers, opened):
    with searchers.acquire(opened, Filters(caller=Caller("ada"))) as first:
        pass
    with searchers.acquire(opened, Filters(caller=Caller("bob"))) as other:
        assert other is not first


def test_two_searches_at_a_time_have_a_searcher_each(searchers, opened):
    with searchers.acquire(opened, Filters()) as one, searchers.acquire(opened, Filters()) as other:
        assert one is not other
        for searcher in (one, other):
            assert len(searcher.search("oak elm", {}, "text", 5)) == 2


def test_searcher_is_thrown_away_after_an_error(searchers, opened):
    with pytest.raises(RuntimeError, match="stopped"), searchers.acquire(opened, Filters()) as broken:
        raise RuntimeError("stopped")
    assert is_closed(broken)
    with searchers.acquire(opened, Filters()) as next_one:
        assert next_one is not broken


@pytest.mark.parametrize(
    ("name", "limit"), [pytest.param("KEPT", 4, id="number"), pytest.param("KEPT_BYTES", 4 * 16, id="bytes")]
)
def test_those_that_were_not_used_the_longest_are_closed(searchers, opened, monkeypatch, name, limit):
    monkeypatch.setattr(searchers_module, name, limit)
    lent = []
    for number in range(6):
        with searchers.acquire(opened, Filters(filename=f"{'ab'[number % 2]}{'*' * (number + 1)}")) as searcher:
            lent.append(searcher)
    assert [is_closed(each) for each in lent] == [True, True, *[False] * 4]
    searchers.close()
    assert all(map(is_closed, lent))


def is_closed(searcher: Searcher) -> bool:
    try:
        searcher.connection.execute("SELECT 1").fetchall()
    except duckdb.ConnectionException:
        return True
    return False
