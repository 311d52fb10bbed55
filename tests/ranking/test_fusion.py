"""Ranked lists are fused into one, and hits are chosen for diversity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.ranking.fusion import RRF_K, VECTOR_WEIGHT, aged, by_rank, convex, diversify, reciprocal_rank
from parquetry.settings.sections import SearchSettings

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


# --- reciprocal ranks


def test_reciprocal_ranks_are_weighed_and_added():
    fused = reciprocal_rank([("a", 0.9), ("b", 0.8)], [("b", 30.0), ("c", 1.0)], 0.3, k=10)
    expected = {"a": 0.3 / 11, "b": 0.3 / 12 + 0.7 / 11, "c": 0.7 / 12}
    assert dict(fused) == pytest.approx(expected)
    assert [each for each, _ in fused] == ["b", "c", "a"]


def test_scores_of_a_list_count_for_nothing_but_its_order():
    assert by_rank([[("a", 1000.0), ("b", 1.0)]]) == by_rank([[("a", 0.2), ("b", 0.1)]])


def test_lists_that_share_nothing_take_turns():
    """Namespaces hold different documents; the best one of each comes first."""
    lists = [[(f"{name}{rank}", 1.0 - rank) for rank in range(3)] for name in "xyz"]
    assert [each for each, _ in by_rank(lists)] == ["x0", "y0", "z0", "x1", "y1", "z1", "x2", "y2", "z2"]


def test_number_of_weights_must_be_that_of_the_lists():
    with pytest.raises(ValueError, match="zip"):
        by_rank([[("a", 1.0)]], [0.5, 0.5])


@given(st.lists(HITS, max_size=5), st.integers(1, 100))
def test_fusion_by_rank_keeps_every_hit_once_in_order(lists, k):
    fused = by_rank(lists, k=k)
    assert {each for each, _ in fused} == {each for hits in lists for each, _ in hits}
    assert len(fused) == len(dict(fused))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= len(lists) / (k + 1) + 1e-12 for score in scores)


@given(HITS, st.integers(1, 5))
def test_any_number_of_equal_lists_keeps_their_order(hits, copies):
    assert [each for each, _ in by_rank([hits] * copies)] == [each for each, _ in hits]


# --- diversity

EAST, NORTH, NORTH_EAST = (1.0, 0.0), (0.0, 1.0), (0.5**0.5, 0.5**0.5)


def matrix(*rows):
    return np.array(rows, np.float32)


@st.composite
def candidates(draw):
    """Return scores, best first, with unit vectors, some of them equal and some zero."""
    scores = sorted(draw(st.lists(st.floats(-5, 5, width=32), max_size=12)), reverse=True)
    rows = [
        draw(st.sampled_from([(0.0,) * 3, *np.eye(3), *-np.eye(3)]) | st.tuples(*[st.floats(-1, 1, width=16)] * 3))
        for _ in scores
    ]
    vectors = np.array(rows, np.float32).reshape(len(scores), 3)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return scores, np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-3)


def test_a_repetition_waits_for_what_is_new():
    assert diversify([0.9, 0.89, 0.6, 0.5], matrix(EAST, EAST, NORTH, NORTH_EAST), 4, 0.5) == [0, 2, 1, 3]


def test_worth_is_relevance_less_likeness_to_the_nearest_chosen_one():
    """Worked out by hand: relevance is 1, 2/3, 1/3, 0; the second repeats part of the first."""
    likeness = (0.8, 0.6)
    choice = diversify([4.0, 3.0, 2.0, 1.0], matrix(EAST, likeness, NORTH, (-1.0, 0.0)), 4, 0.5)
    # after 0: 1 has 0.333-0.4, 2 has 0.167-0, 3 has 0+0.5; after 3: 1 has 0.333-0.4, 2 has 0.167-0
    assert choice == [0, 3, 2, 1]


def test_the_choice_does_not_depend_on_the_scale_of_the_scores():
    vectors = matrix(EAST, EAST, NORTH_EAST, NORTH)
    scores = np.array([0.032, 0.031, 0.02, 0.01])
    assert diversify(list(scores), vectors, 4) == diversify(list(scores * 1000 - 7), vectors, 4)


def test_the_most_relevant_hit_comes_first_even_when_difference_alone_counts():
    assert diversify([3.0, 2.0, 1.0], matrix(EAST, NORTH_EAST, NORTH), 2, 0.0) == [0, 2]


def test_hits_without_a_vector_are_like_nothing():
    assert diversify([1.0, 0.9, 0.1], matrix(EAST, EAST, (0.0, 0.0)), 3, 0.5) == [0, 2, 1]


def test_scores_and_vectors_must_be_as_many():
    with pytest.raises(ValueError, match="2 scores, but 1 vectors"):
        diversify([1.0, 0.5], matrix(EAST), 1)


@given(candidates(), st.floats(0, 1))
def test_choosing_all_is_a_permutation(hits, share):
    scores, vectors = hits
    assert sorted(diversify(scores, vectors, len(scores), share)) == list(range(len(scores)))


@given(candidates(), st.integers(0, 15))
def test_relevance_alone_keeps_the_order_and_its_ties(hits, k):
    scores, vectors = hits
    assert diversify(scores, vectors, k, 1.0) == list(range(len(scores)))[:k]


@given(candidates(), st.integers(0, 12), st.floats(0, 1))
def test_fewer_hits_are_the_beginning_of_more(hits, k, share):
    scores, vectors = hits
    assert diversify(scores, vectors, k, share) == diversify(scores, vectors, len(scores), share)[:k]


@given(st.integers(1, 8), st.floats(0, 1))
def test_equal_hits_stay_in_order(n, share):
    assert diversify([0.5] * n, matrix(*[EAST] * n), n, share) == list(range(n))


def test_score_halves_with_every_half_life():
    assert [aged(0.8, days, 30) for days in (0, 30, 60)] == [0.8, 0.4, 0.2]


@given(st.floats(-100, 100), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.01, 1e4))
def test_older_of_two_equals_is_never_the_better(score, days, more, half_life):
    assert aged(score, days + more, half_life) <= aged(score, days, half_life) <= score


def test_what_is_dated_in_the_future_is_as_new_as_now():
    assert aged(0.5, -400, 30) == 0.5


def test_constants_are_the_defaults_of_the_settings():
    assert (SearchSettings().vector_weight, SearchSettings().rrf_k) == (VECTOR_WEIGHT, RRF_K)
