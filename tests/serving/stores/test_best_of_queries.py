"""The hits of several queries are one ranking, in which each excerpt stands once."""

from dataclasses import replace

from parquetry.serving.stores.search import _best
from tests.serving.hits import hit


def found(text, document, relevance, index=0):
    return replace(hit(text, index=index, document_id=document), relevance=relevance)


def told(hits):
    return [(each.row["document_id"], each.row["text"], each.relevance) for each in hits]


def test_a_chunk_that_two_queries_find_has_its_best_relevance():
    one, other = found("oak", "a", 0.5), found("oak", "a", 0.8)
    assert told(_best([[one], [other, found("ash", "b", 0.6)]], 10)) == [("a", "oak", 0.8), ("b", "ash", 0.6)]


def test_copies_of_a_text_that_different_queries_find_are_one_excerpt():
    first = [found("oak", "a", 0.5), found("ash", "b", 0.4)]
    second = [found("oak", "c", 0.7), found("elm", "d", 0.6)]
    assert told(_best([first, second], 10)) == [("c", "oak", 0.7), ("d", "elm", 0.6), ("b", "ash", 0.4)]


def test_as_many_as_are_asked_for_are_left_although_copies_go():
    first = [found("oak", "a", 0.9), found("ash", "b", 0.4)]
    second = [found("oak", "c", 0.8), found("elm", "d", 0.3)]
    assert [each.row["text"] for each in _best([first, second], 2)] == ["oak", "ash"]
