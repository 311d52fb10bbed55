"""Candidates rank by cosine and shared words, numbered from 1; drafts that say the same are merged first."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.model import Access
from parquetry.sessions.merge.candidates import fold, ranked, shared_words, unit
from parquetry.sessions.merge.thresholds import GENERIC, Threshold, candidate_bar
from tests.sessions.known import SAID, draft, entry

ENTRIES = [entry(f"Shelf {number} is of pine") for number in range(12)]
NUMBERS = st.floats(-1, 1)
PLAIN = Threshold(0.5)
SHELF = "Which shelf is of oak?"


@given(st.lists(NUMBERS, max_size=12), st.floats(-1, 1), st.integers(1, 6))
def test_candidates_are_the_nearest_in_order_and_no_others(cosines, least, limit):
    found = ranked(SHELF, zip(ENTRIES, cosines, strict=False), Threshold(least), limit)
    assert [each.ordinal for each in found] == list(range(1, len(found) + 1))
    assert [each.score for each in found] == sorted((each for each in cosines if each >= least), reverse=True)[:limit]


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_words_in_common_count_beside_the_cosine(cosines):
    """An entry with fewer shared words never precedes an equally near one; a missing cosine is not reported."""
    entries = [entry(f"Shelf {number} is of oak" if number % 2 else f"Glue {number} is hot") for number in range(12)]
    near = dict(zip([each.entry_id for each in entries], cosines, strict=False))
    found = ranked(SHELF, zip(entries, cosines, strict=False), Threshold(-1, words=0.5), 12)
    alike = [each.score + 0.5 * shared_words(SHELF, each.entry.text) for each in found]
    assert alike == sorted(alike, reverse=True)
    assert {each.entry.entry_id: each.score for each in found} == near


def test_entry_far_off_needs_words_in_common_to_be_compared():
    said = "Walnut is dried in kiln 3"
    known = [entry("Kiln 3 dries walnut"), entry("The crane stops in frost")]
    bar = Threshold(0.5, words=0.4)
    assert [each.entry for each in ranked(said, zip(known, (0.3, 0.3), strict=True), bar, 5)] == known[:1]
    assert [each.entry for each in ranked(said, zip(known, (0.3, 0.6), strict=True), bar, 5)] == known


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("The walnut is dried", "Drying walnut", 1.0),
        ("Kiln 3 is hot", "Kiln 4 is hot", 0.5),
        ("We use DuckDB", "We use SQLite", 1 / 3),
        ("Oak is oiled", "The crane stops", 0.0),
        ("is of the", "and or not", 0.0),
        ("早上喝茶", "晚上喝茶", 0.5),
    ],
    ids=["endings", "numbers", "names", "nothing", "function words", "no spaces"],
)
def test_words_numbers_and_names_are_shared_up_to_endings(one, other, share):
    assert shared_words(one, other) == pytest.approx(share)
    assert shared_words(other, one) == shared_words(one, other)


def test_a_vector_of_extreme_components_has_a_direction():
    assert unit(np.array([[3e38, 3e38], [1e-40, 0]], np.float32)) == pytest.approx(
        np.array([[0.7071, 0.7071], [1, 0]]), abs=1e-3
    )


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf], ids=["zero", "nan", "infinite"])
def test_a_vector_without_a_direction_is_near_to_nothing(value):
    assert unit(np.full((1, 3), value, np.float32)).tolist() == [[0, 0, 0]]


def test_an_entry_found_in_two_places_counts_once_with_its_better_score():
    scored = [(ENTRIES[0], 0.7), (ENTRIES[1], 0.8), (ENTRIES[0], 0.9), (ENTRIES[2], 0.3)]
    found = ranked(SHELF, scored, PLAIN, 5)
    assert [(each.ordinal, each.entry, each.score) for each in found] == [(1, ENTRIES[0], 0.9), (2, ENTRIES[1], 0.8)]


def test_equally_near_entries_stand_in_one_order_however_they_come():
    scored = [(each, 0.5) for each in ENTRIES]
    assert ranked(SHELF, scored, PLAIN, 5) == ranked(SHELF, reversed(scored), PLAIN, 5)


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


def test_a_measured_embedder_has_its_own_bar_and_any_other_the_lowest():
    measured = candidate_bar("wordllama:l2-supercat/1@256")
    assert measured.words > 0
    assert 0 < measured.cosine < GENERIC.cosine == GENERIC.least < 1
    assert candidate_bar("openai:text-embedding-3-small/1@1536") == GENERIC
