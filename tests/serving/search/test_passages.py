"""Hits with their neighbours: no repetition, no text from elsewhere, and the hits' own spans kept."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.search.passages import ChunkPosition, Passage, Stretch, merge
from tests.serving.hits import hit


def document(name="d", count=9, size=10, step=8):
    """Return chunks that overlap their neighbours by two characters."""
    return [ChunkPosition(name, index, index * step, index * step + size) for index in range(count)]


CHUNKS = document()


@pytest.mark.parametrize(
    ("hits", "context", "expected"),
    [
        pytest.param([4], 0, [(32, 42, (0,))], id="alone"),
        pytest.param([4], 1, [(24, 50, (0,))], id="neighbours"),
        pytest.param([0], 2, [(0, 26, (0,))], id="start"),
        pytest.param([8], 3, [(40, 74, (0,))], id="end"),
        pytest.param([4], 99, [(0, 74, (0,))], id="all"),
        pytest.param([4, 5], 0, [(32, 50, (0, 1))], id="touching-hits"),
        pytest.param([5, 4], 0, [(32, 50, (1, 0))], id="in-the-order-of-the-text"),
        pytest.param([2, 5], 1, [(8, 58, (0, 1))], id="touching-neighbours"),
        pytest.param([7, 1], 1, [(48, 74, (0,)), (0, 26, (1,))], id="apart-in-the-order-of-the-hits"),
        pytest.param([], 3, [], id="nothing"),
    ],
)
def test_hits_come_with_their_neighbours(hits, context, expected):
    found = merge([CHUNKS[index] for index in hits], CHUNKS, context)
    assert [(each.start, each.end, each.hits) for each in found] == expected


def test_chunks_that_follow_each_other_touch_whatever_white_space_is_between():
    chunks = document(size=5)
    assert merge(chunks[2:4], chunks, 0) == [Stretch("d", 16, 29, (0, 1))]
    assert len(merge([chunks[2], chunks[4]], chunks, 0)) == 2


def test_documents_are_never_joined():
    others = document("e")
    found = merge([CHUNKS[8], others[0]], [*CHUNKS, *others], 2)
    assert found == [Stretch("d", 48, 74, (0,)), Stretch("e", 0, 26, (1,))]


@given(
    st.lists(st.tuples(st.sampled_from("de"), st.integers(0, 8)), unique=True, max_size=8),
    st.integers(0, 4),
    st.sampled_from([(10, 8), (5, 8), (30, 8), (8, 8)]),
)
def test_every_hit_is_in_one_passage_and_no_character_in_two(keys, context, sizes):
    chunks = {(name, each.chunk_index): each for name in "de" for each in document(name, 9, *sizes)}
    hits = [chunks[key] for key in keys]
    found = merge(hits, list(chunks.values()), context)
    assert sorted(rank for each in found for rank in each.hits) == list(range(len(hits)))
    for each in found:
        assert each.hits
        for rank in each.hits:
            assert (each.document_id, True) == (hits[rank].document_id, each.start <= hits[rank].start)
            assert hits[rank].end <= each.end
    assert [min(each.hits) for each in found] == sorted(min(each.hits) for each in found)
    by_place = sorted(found, key=lambda each: (each.document_id, each.start))
    for before, after in pairwise(by_place):
        assert before.document_id != after.document_id or before.end < after.start


def test_passage_marks_its_hits():
    passage = Passage(Stretch("d", 10, 40, (1, 0)), "x" * 30, ((12, 20), (30, 40)))
    told = passage.as_json([hit(index=3).row, hit(index=1).row])
    assert told["span"] == [10, 40]
    assert told["hits"] == [
        {"result": 1, "chunk_id": "d-chunk-1", "span": [12, 20]},
        {"result": 0, "chunk_id": "d-chunk-3", "span": [30, 40]},
    ]
