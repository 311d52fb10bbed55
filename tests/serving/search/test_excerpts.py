"""Excerpts: the lines of a chunk that are shown; code and tables keep their line breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.search.excerpts import excerpt, wrapped

PROSE = "\n\n".join(f"Paragraph {number} of the\nhandbook says little." for number in range(6)) + "\n\nThe kiln is hot."
CODE = "def dry(kiln):\n\tif kiln.open:\n\t\treturn None\n\n    # " + "heat " * 30 + "\n    return kiln.heat()"
TABLE = "| wood | price |\n| --- | --- |\n" + "\n".join(f"| wood {n} | {n} |" for n in range(20)) + "\n| elm | 77 |"


def shown(text, query, width=60, *, code=False):
    return excerpt(text, query, width, code=code, language="english")


def test_prose_is_wrapped_and_the_lines_that_answer_are_shown():
    found = shown(PROSE, "how hot is the kiln")
    assert found == ["...", *[f"Paragraph {n} of the handbook says little." for n in (3, 4, 5)], "The kiln is hot."]


def test_source_code_keeps_its_lines_and_long_ones_are_cut():
    found = shown(CODE, "kiln", 40, code=True)
    assert found[:3] == ["def dry(kiln):", "    if kiln.open:", "        return None"]
    assert found[3] == "    # heat heat heat heat heat heat h..."
    assert found[4] == "..."
    assert len(found[3]) == 40


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Dry it\nlike this:\n\n```python\n{CODE}\n```\n\nThat is all.", id="fenced"),
        pytest.param(f"Dry it\nlike this:\n\n~~~\n{CODE}\n~~~", id="tildes"),
        pytest.param(f"{CODE}\n```\n\nDry it\nlike this.", id="begins-in-code"),
    ],
)
def test_code_among_prose_keeps_its_lines(text):
    found = shown(text, "def dry kiln.open None", 40)
    start = found.index("def dry(kiln):")
    assert found[start : start + 3] == ["def dry(kiln):", "    if kiln.open:", "        return None"]


def test_rows_are_shown_below_the_names_of_their_columns():
    assert shown(TABLE, "price of elm") == [
        "| wood | price |", "...", "| wood 17 | 17 |", "| wood 18 | 18 |", "| wood 19 | 19 |", "| elm | 77 |",
    ]  # fmt: skip
    assert shown(TABLE, "price") == ["| wood | price |", "| wood 0 | 0 |", "| wood 1 | 1 |", "| wood 2 | 2 |", "..."]


def test_short_words_and_numbers_decide_too():
    assert "| elm | 77 |" in shown(TABLE, "77")
    assert "| wood 11 | 11 |" in shown(TABLE, "11")


def test_headings_and_items_begin_a_line():
    text = "# Kilns\nThree of them.\n- the old one\n  in the yard\n- the new one"
    assert shown(text, "kiln") == ["# Kilns", "Three of them.", "- the old one in the yard", "- the new one"]


def test_whole_texts_are_wrapped_below_their_indentation():
    assert wrapped("if a:\n    return one or two or three", 20) == ["if a:", "    return one or", "    two or three"]


@given(st.text(alphabet="ab |-\n`#\t.1", max_size=400), st.text(alphabet="ab1 ", max_size=9), st.booleans())
def test_excerpt_fits_and_is_never_empty_where_there_is_something(text, query, code):
    found = shown(text, query, 30, code=code)
    assert len(found) <= 6
    assert all(0 < len(line) <= 30 for line in found)
    assert found or not any(character in "ab1" for character in text)


@pytest.mark.parametrize(
    "text", ["|" * 100_000, "| a |\n|-|\n" * 20_000, "```\n" * 30_000, " " * 100_000 + "x", "\t" * 9_000]
)
def test_monotonous_text_takes_no_time_to_speak_of(text):
    assert all(len(line) <= 80 for line in shown(text, "a", 80))
