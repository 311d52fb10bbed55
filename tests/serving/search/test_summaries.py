"""Summaries: the first sentences of a text, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.search.summaries import MOST_CHARACTERS, READ, summary


def test_first_three_sentences_without_headings_on_one_line():
    text = "# Leave\n\nEverybody has thirty days.\nThey may be split. New parents\nhave more. A fourth sentence."
    assert summary(text) == "Everybody has thirty days. They may be split. New parents have more."


def test_headings_alone_are_better_than_nothing():
    assert summary("# Leave\n\n## Holiday\n") == "Leave Holiday"
    assert summary("") == summary(" \n") == ""
    assert summary("---\n") == "---"


def test_only_whole_sentences_that_fit():
    text = f"Short one. {'Long ' * 100}end. Third."
    assert summary(text) == "Short one."


@pytest.mark.parametrize(
    ("text", "cut"),
    [("one two three four five six", "one two three…"), ("abcdefghijklmnopqrstuvw", "abcdefghijklmno…")],
    ids=["at-a-word", "one-endless-word"],
)
def test_sentence_too_long_is_cut(text, cut):
    assert summary(text, 16) == cut


def test_end_of_what_was_read_is_no_sentence():
    """The text is cut inside the second sentence, which must not look complete."""
    text = "One. " + "X " * READ
    assert summary(text) == "One."


@given(st.text())
def test_never_too_long_and_never_several_lines(text):
    found = summary(text)
    assert len(found) <= MOST_CHARACTERS
    assert len(found.splitlines()) <= 1
    assert bool(found) == bool(text.strip())
