"""Texts that differ only in spelling are distinguished from those that differ in meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.sessions.normalise import equal, nearly_equal, normalised_key, words

SAME = {
    "case": ("Walnut is dried in kiln 3", "walnut is dried in Kiln 3"),
    "end": ("Walnut is dried in kiln 3.", "Walnut is dried in kiln 3"),
    "space": ("Walnut is  dried\nin kiln 3", "Walnut is dried in kiln 3"),
    "articles": ("Use the glue in a bath", "Use glue in bath"),
    "first article": ("A crane lifts crates", "Crane lifts crates"),
    "commas": ("Sand, then oil the oak", "Sand then oil the oak"),
    "contraction": ("Don't oil the oak", "Do not oil the oak"),
    "cannot": ("Oak can't be oiled", "Oak cannot be oiled"),
    "apostrophe": ("Don’t oil oak", "Don't oil oak"),
    "quotation marks": ("Use “fish glue”", 'Use "fish glue"'),
    "code": ("Run `make all` first", "Run make all first"),
    "brackets": ("Oil (twice) dries", "Oil twice dries"),
    "dash": ("Glue – warm – holds", "Glue warm holds"),
    "width": ("Use ＫＩＬＮ ３", "Use kiln 3"),
}
DIFFERENT = {
    "number": ("Walnut is dried in kiln 3", "Walnut is dried in kiln 4"),
    "decimal": ("Use version 3.1", "Use version 31"),
    "sign": ("Store at -5 degrees", "Store at 5 degrees"),
    "bound": ("Keep x < 5", "Keep x 5"),
    "symbol": ("Write it in C++", "Write it in C"),
    "quoted sign": ('Split at "," there', 'Split at ";" there'),
    "operator": ("Join with && there", "Join with || there"),
    "flag": ("Run it with -v", "Run it with v"),
    "hidden file": ("Edit .gitignore", "Edit gitignore"),
    "hidden file first": (".gitignore is kept", "gitignore is kept"),
    "call": ("Call oil()", "Call oil"),
    "folder above": ("Run cd .. first", "Run cd first"),
    "denial": ("Oil the oak", "Do not oil the oak"),
    "name": ("Marta oils the oak", "Ivo oils the oak"),
    "order": ("Prefer oak over pine", "Prefer pine over oak"),
    "letter": ("Use plan A today", "Use plan today"),
    "question": ("Oak is oiled", "Oak is oiled?"),
    "word more": ("Oil the oak", "Oil the oak twice"),
    "per cent": ("Add 5% oil", "Add 5 oil"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_another_writing_is_nearly_equal(one, other):
    assert nearly_equal(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_statement_is_not(one, other):
    assert not nearly_equal(one, other)


def test_words_keep_what_stands_inside_them():
    said = words("Don’t call f(x), “ever”: use (foo) or [bar] — `cd ..` at 3.5!")
    assert said == ["do", "not", "call", "f(x)", "ever", "use", "foo", "or", "bar", "cd", "..", "at", "3.5"]


@given(
    st.text(alphabet=st.sampled_from("aA .!,'\"(`)-。the"), max_size=12), st.sampled_from(["", " ", ".", "!", " . "])
)
def test_what_is_one_entry_is_always_nearly_equal(text, end):
    other = text.upper() + end
    if equal(text, other):
        assert nearly_equal(text, other)


@given(st.text(max_size=30), st.text(max_size=30))
def test_equal_texts_have_one_key_whatever_they_hold(one, other):
    assert not equal(one, other) or normalised_key(one) == normalised_key(other)
    assert normalised_key(one)
