"""Results of several queries become one list: nothing is lost, nothing stands twice, and ranks are kept."""

from dataclasses import replace

from parquetry.model import ENTRY_TYPE
from parquetry.serving.search.merging import best_places, distinct_places
from tests.serving.hits import hit


def found(name, relevance, document=None, **columns):
    made = hit(**{"text": f"About {name}.", "chunk_id": name, "document_id": document or name, **columns})
    return replace(made, relevance=relevance)


def names(lists, places):
    return [lists[query][rank].row["chunk_id"] for query, rank in places]


def test_every_hit_stands_once_with_its_best_relevance():
    lists = [[found("a", 0.9), found("b", 0.2)], [found("b", 0.7), found("c", 0.4)], []]
    assert best_places(lists) == [(0, 0), (1, 0), (1, 1)]


def test_of_the_same_relevance_the_one_further_in_front_comes_first():
    lists = [[found("z", 0.0), found("y", 0.0), found("x", 0.0)], [found("w", 0.0), found("x", None)]]
    assert names(lists, best_places(lists)) == ["z", "w", "y", "x"]
    assert best_places([[found("z", 1.0), found("y", 1.0)]] * 2) == [(0, 0), (0, 1)]


def test_a_document_stands_once_by_its_best_chunk():
    lists = [[found("a1", 0.3, "a"), found("b1", 0.2, "b")], [found("a2", 0.6, "a")]]
    assert names(lists, best_places(lists)) == ["a2", "a1", "b1"]
    assert names(lists, best_places(lists, documents=True)) == ["a2", "b1"]


def test_of_equal_texts_the_best_one_stays_and_entries_all_do():
    lists = [[found("a", 0.3, text="Same.")], [found("b", 0.6, text="Same.")]]
    assert names(lists, distinct_places(lists)) == ["b"]
    entries = [[found(name, 0.5, text="Same.", media_type=ENTRY_TYPE)] for name in "ab"]
    assert names(entries, distinct_places(entries)) == ["a", "b"]
