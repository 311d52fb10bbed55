"""Candidates are the nearest by cosine, numbered from one; drafts that say the same become one before comparing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from knowledge.model import Access
from knowledge.sessions.candidates import candidates, fold, ranked, unit
from knowledge.sessions.thresholds import GENERIC, candidate_threshold
from tests.knowledge.sessions.known import SAID, draft, entry

ENTRIES = [entry(f"Shelf {number} is of pine") for number in range(12)]
NUMBERS = st.floats(-100, 100, width=32)


@st.composite
def questions(draw):
    count = draw(st.integers(0, len(ENTRIES)))
    vectors = draw(arrays.arrays(np.float32, (count, 4), elements=NUMBERS))
    return draw(arrays.arrays(np.float32, 4, elements=NUMBERS)), ENTRIES[:count], vectors


@given(questions(), st.floats(-1, 1), st.integers(1, 6))
def test_candidates_are_the_nearest_in_order_and_no_others(question, threshold, limit):
    vector, entries, vectors = question
    found = candidates(vector, entries, vectors, threshold, limit)
    assert [each.ordinal for each in found] == list(range(1, len(found) + 1))
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(threshold <= score <= 1.0001 for score in scores)
    cosines = {
        known.entry_id: float(unit(row[np.newaxis])[0] @ unit(vector[np.newaxis])[0])
        for known, row in zip(entries, vectors, strict=True)
    }
    near = sorted((score for score in cosines.values() if score >= threshold), reverse=True)[:limit]
    assert scores == pytest.approx(near, abs=1e-5)
    for each in found:
        assert each.score == pytest.approx(cosines[each.entry.entry_id], abs=1e-5)


@given(questions())
def test_the_length_of_a_vector_makes_no_difference(question):
    vector, entries, vectors = question
    plain = candidates(vector, entries, vectors, 0.5, 5)
    scaled = candidates(vector * 8, entries, vectors * 0.25, 0.5, 5)
    assert [each.entry for each in plain] == [each.entry for each in scaled]


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf], ids=["zero", "nan", "infinite"])
def test_a_vector_without_a_direction_is_near_to_nothing(value):
    useless = np.full(3, value, np.float32)
    good = np.ones((1, 3), np.float32)
    assert candidates(useless, ENTRIES[:1], good, 0.1, 5) == []
    assert candidates(good[0], ENTRIES[:1], useless[np.newaxis], 0.1, 5) == []


def test_a_vector_of_extreme_components_has_a_direction():
    assert unit(np.array([[3e38, 3e38], [1e-40, 0]], np.float32)) == pytest.approx(
        np.array([[0.7071, 0.7071], [1, 0]]), abs=1e-3
    )


def test_vectors_that_do_not_fit_are_a_mistake():
    with pytest.raises(ValueError, match="2 entries"):
        candidates(np.ones(3, np.float32), ENTRIES[:2], np.ones((1, 3), np.float32), 0.5, 5)


def test_an_entry_found_in_two_places_counts_once_with_its_better_score():
    found = ranked([(ENTRIES[0], 0.7), (ENTRIES[1], 0.8), (ENTRIES[0], 0.9), (ENTRIES[2], 0.3)], 0.5, 5)
    assert [(each.ordinal, each.entry, each.score) for each in found] == [(1, ENTRIES[0], 0.9), (2, ENTRIES[1], 0.8)]


def test_equally_near_entries_stand_in_one_order_however_they_come():
    scored = [(each, 0.5) for each in ENTRIES]
    assert ranked(scored, 0.5, 5) == ranked(reversed(scored), 0.5, 5)


# --- within a session


def test_drafts_that_say_the_same_become_one_with_the_evidence_of_all():
    later = SAID.replace(hour=11)
    first = draft("Walnut is dried in kiln 3", evidence=("m-1", "m-2"), confidence=0.7)
    again = draft("walnut is dried in the kiln 3.", evidence=("m-2", "m-9"), confidence=0.9, said_at=later)
    other = draft("Oak is dried in kiln 3")
    folded = fold([first, other, again])
    assert folded.drafts == (dataclasses.replace(again, evidence=("m-1", "m-2", "m-9")), other)
    assert folded.drafts[0].said_at == later
    assert folded.duplicates == ((2, 0),)


def test_of_equally_sure_drafts_the_first_one_is_kept():
    one, other = draft("Oak is oiled twice"), draft("Oak is oiled twice!")
    assert fold([one, other]).drafts == (one,)
    assert fold([other, one]).drafts == (other,)


@pytest.mark.parametrize(
    "access",
    [Access("individual", None, "ada"), Access("individual", None, "ivo"), Access("organization", "guild", None)],
    ids=["one user", "another user", "organization"],
)
def test_drafts_of_different_scopes_stay_apart(access):
    drafts = [draft("Oak is oiled twice"), draft("Oak is oiled twice", access=access)]
    assert fold(drafts) == fold(fold(drafts).drafts)
    assert len(fold(drafts).drafts) == 2


def test_drafts_that_are_merely_alike_stay_apart():
    drafts = [draft("Oak is oiled twice"), draft("Oak is oiled three times"), draft("Oak is not oiled twice")]
    assert fold(drafts).drafts == tuple(drafts)


@given(
    st.lists(
        st.sampled_from(["Oak is oiled", "oak is oiled.", "The oak is oiled", "Pine is oiled", "Oak isn't oiled"]),
        max_size=8,
    )
)
def test_folding_loses_no_evidence_and_doing_it_twice_changes_nothing(texts):
    drafts = [draft(text, evidence=(f"m-{place}",)) for place, text in enumerate(texts)]
    folded = fold(drafts)
    assert len(folded.drafts) + len(folded.duplicates) == len(drafts)
    assert sorted(each for one in folded.drafts for each in one.evidence) == sorted(
        f"m-{place}" for place in range(len(texts))
    )
    assert fold(folded.drafts).drafts == folded.drafts


# --- thresholds


def test_a_measured_embedder_has_its_own_threshold_and_any_other_the_lowest():
    assert 0 < GENERIC <= candidate_threshold("wordllama:l2-supercat/1@256") < 1
    assert candidate_threshold("openai:text-embedding-3-small/1@1536") == GENERIC
