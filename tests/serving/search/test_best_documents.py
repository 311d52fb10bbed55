"""Documents rank by their best chunk, and by what else speaks for them."""

import pytest

from parquetry.serving.search.best_documents import best_of_each
from parquetry.serving.search.service import SearchRequest
from parquetry.storage.search.searcher import Hit


def hit(document, score, identity=None):
    return Hit(score, {}, {"document_id": document, "chunk_id": f"{document}-{score}"}, identity=identity)


def order(hits, mode="hybrid", looked=None):
    return [found.row["chunk_id"] for found in best_of_each(hits, mode, looked)]


def test_second_chunk_decides_between_documents_with_nearly_the_same_best():
    assert order([hit("one", 1.0), hit("two", 0.95), hit("two", 0.9)]) == ["two-0.95", "one-1.0"]


def test_third_chunk_adds_nothing():
    """Long documents have more chunks of everything."""
    hits = [hit("one", 1.0), hit("one", 0.8), hit("two", 0.99), hit("two", 0.8), *[hit("two", 0.7)] * 9]
    assert order(sorted(hits, key=lambda each: -each.score)) == ["one-1.0", "two-0.99"]


def test_identity_decides_between_documents_with_nearly_the_same_best():
    hits = [hit("report-2016", 1.0, 2.0), hit("report-2017", 0.97), hit("report-2017", 0.1, 6.0)]
    assert order(hits) == ["report-2017-0.97", "report-2016-1.0"]
    assert order(hits, "text") == ["report-2017-0.97", "report-2016-1.0"]


def test_much_better_chunk_is_not_outdone():
    assert order([hit("one", 1.0), hit("two", 0.75, 9.0), hit("two", 0.75)]) == ["one-1.0", "two-0.75"]


def test_vectors_rank_by_the_best_chunk_alone():
    """Their cosines may be negative, and a second chunk or the mean of all made results worse."""
    hits = [hit("one", -0.1), hit("two", -0.2), hit("two", -0.21)]
    assert [each.score for each in best_of_each(hits, "vector")] == [-0.1, -0.2]


@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_scores_fall_and_are_none_above_the_best_chunk(mode):
    scores = [
        found.score
        for found in best_of_each([hit("one", 8.0, 3.0), hit("one", 8.0), hit("two", 7.0), hit("three", 0.0)], mode)
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(8.0)


def test_documents_beyond_those_looked_at_come_last():
    hits = [hit("one", 1.0), hit("two", 0.9), hit("two", 0.8, 5.0), hit("late", 0.8, 9.0), hit("late", 0.8, 9.0)]
    assert order(hits, looked=2) == ["one-1.0", "two-0.9", "late-0.8"]
    assert order(hits, looked=3) == ["two-0.9", "one-1.0", "late-0.8"]
    assert order([], looked=3) == []


@pytest.mark.slow
def test_search_ranks_documents_by_more_than_the_best_chunk(workshop):
    workshop.sections["chunking"] = {"size": 60, "overlap": 0}
    rest = "Pine is sold by the metre, and birch by weight."
    workshop.write("1.md", f"Oak boards are dried in a kiln for nine days.\n\n{rest}\n")
    longer = "Oak boards are dried in a kiln for nine long days."
    workshop.write("2.md", f"{longer}\n\n{rest}\n\nThe kiln dries oak in May.\n")
    workshop.refresh()
    reader = workshop.reader()
    chunk, *_ = reader.search(SearchRequest("kiln for oak boards", "text")).hits
    first, second = reader.search(SearchRequest("kiln for oak boards", "text", level="document")).hits
    assert chunk.row["filename"] == second.row["filename"] == "1.md"
    assert first.row["filename"] == "2.md"
    assert first.score > second.score
