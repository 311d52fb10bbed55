"""Two ranked lists become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.rank import VECTOR_WEIGHT, convex

HITS = st.dictionaries(st.integers(0, 20), st.floats(-10, 100, allow_nan=False), max_size=12).map(
    lambda scores: sorted(scores.items(), key=lambda pair: -pair[1])
)


def test_scores_are_normalised_on_each_side_and_weighed():
    fused = convex([("a", 0.9), ("b", 0.7), ("c", 0.5)], [("c", 12.0), ("a", 2.0)], 0.3)
    assert fused == [("c", pytest.approx(0.7)), ("a", pytest.approx(0.3)), ("b", pytest.approx(0.15))]


def test_hit_of_both_sides_beats_the_best_of_one():
    assert convex([("a", 1.0), ("b", 0.9), ("z", 0.0)], [("c", 5.0), ("b", 4.9), ("y", 0.0)], 0.5)[0][0] == "b"


@pytest.mark.parametrize(("weight", "first"), [(0.0, "text"), (1.0, "vector")])
def test_weight_of_one_side_alone_gives_its_order(weight, first):
    assert convex([("vector", 2.0), ("x", 1.0)], [("text", 2.0), ("y", 1.0)], weight)[0][0] == first


@pytest.mark.parametrize("hits", [[("a", 5.0)], [("a", 5.0), ("b", 5.0)], [("a", 0.0)]])
def test_side_without_differences_counts_in_full(hits):
    assert convex(hits, [], 0.25) == [(each, 0.25) for each, _ in hits]
    assert convex([], hits, 0.25) == [(each, 0.75) for each, _ in hits]


def test_nothing_fuses_to_nothing():
    assert convex([], []) == []


def test_ties_stand_in_the_order_of_their_appearance():
    assert [each for each, _ in convex([("b", 1.0), ("a", 1.0)], [("d", 1.0), ("c", 1.0)], 0.5)] == list("badc")


@given(HITS, HITS, st.floats(0, 1))
def test_fusion_keeps_every_hit_once_in_order_with_scores_between_zero_and_one(vector, text, weight):
    fused = convex(vector, text, weight)
    assert {each for each, _ in fused} == {each for each, _ in [*vector, *text]}
    assert len(fused) == len(dict(fused))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in scores)


@given(HITS)
def test_one_side_alone_keeps_its_order(hits):
    assert [score for _, score in hits] == [dict(hits)[each] for each, _ in convex(hits, [], VECTOR_WEIGHT)]
