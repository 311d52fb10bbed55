"""The choice of the sentence of a chunk to quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.search.snippets import LONGEST_SNIPPET, snippets


def quoted(query, text, headings=(), language="english"):
    (found,) = snippets(query, [text], [headings], language)
    return text[slice(*found.span)]


LEAVE = "# Parental leave\n\nParental leave is 26 weeks at full pay. Tell your manager early. It may be split in two."


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("who tells the manager", "Tell your manager early.", id="words"),
        pytest.param("MANAGERS telling", "Tell your manager early.", id="inflection-and-case"),
        pytest.param("can it be split", "It may be split in two.", id="stop-words-do-not-count"),
        pytest.param("what is it that is in the early days", "Tell your manager early.", id="words-that-say-nothing"),
        pytest.param("it in", "It may be split in two.", id="stop-words-count-if-there-is-nothing-else"),
        pytest.param("parental leave", "Parental leave is 26 weeks at full pay.", id="no-heading"),
        pytest.param("kiln temperature", "Parental leave is 26 weeks at full pay.", id="nothing-in-common"),
        pytest.param("", "Parental leave is 26 weeks at full pay.", id="no-query"),
        pytest.param("management", "Tell your manager early.", id="similar-word"),
    ],
)
def test_sentence_nearest_to_the_query_is_quoted(query, expected):
    assert quoted(query, LEAVE, ["Parental leave"]) == expected


def test_heading_is_known_without_a_mark():
    """Most formats do not mark headings."""
    text = "Moving\nOne more day."
    assert quoted("moving", text, ["Leave", "Moving"]) == "One more day."
    assert quoted("moving", "Moving", ["Moving"]) == "Moving"


def test_rarest_word_decides():
    texts = ["Oak is hard. The report SR-77 says so.", "Oak is heavy. Oak is brown.", "Oak burns."]
    first, *_ = snippets("oak SR-77", texts, [()] * 3, "english")
    assert texts[0][slice(*first.span)] == "The report SR-77 says so."


def test_inflections_are_those_of_the_language():
    text = "Der Ofen ist aus. Die Häuser sind alt."
    assert quoted("Haus alt", text, language="german") == "Die Häuser sind alt."
    assert quoted("HAUSER", text, language="none") == "Die Häuser sind alt."


def test_text_without_spaces_is_compared_by_pairs_of_characters():
    text = "今日は晴れです。休暇は三十日です。明日は雨です。"
    assert quoted("休暇の日数", text) == "休暇は三十日です。"
    assert quoted("ลาพักร้อน", "วันนี้ฝนตก\nลาพักร้อนได้สิบวัน") == "ลาพักร้อนได้สิบวัน"


def test_row_of_a_table_is_quoted_alone():
    table = "| name | price |\n|---|---|\n| oak | 640 |\n| elm | 700 |"
    assert quoted("how much is elm", table) == "| elm | 700 |"


TABLE = (
    "| name | price | stock |\n| --- | --- | --- |\n| oak | 640 | 12 |\n| elm | 700 | 3 |\n| price list oak | 1 | 0 |"
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("price of elm", "| elm | 700 | 3 |", id="row-and-column"),
        pytest.param("which one costs 640", "| oak | 640 | 12 |", id="number"),
        pytest.param("price and stock", "| price list oak | 1 | 0 |", id="columns-are-no-answer"),
        pytest.param("stock", "| oak | 640 | 12 |", id="column-alone"),
    ],
)
def test_row_is_quoted_with_the_names_of_its_columns(query, expected):
    text = f"Prices of 2031.\n\n{TABLE}\n\nDelivered flat."
    (found,) = snippets(query, [text], [()], "english")
    assert text[slice(*found.span)] == expected
    assert text[slice(*found.header)] == "| name | price | stock |"


def test_sentence_beside_a_table_has_no_column_names():
    (found,) = snippets("delivered flat", [f"{TABLE}\n\nDelivered flat."], [()], "english")
    assert found.header is None


def test_long_row_is_quoted_whole():
    """A part of the row would appear under the wrong columns."""
    row = f"| oak | {'very long remark ' * 40}| 640 |"
    (found,) = snippets("oak", [f"| name | remark | price |\n|---|---|---|\n{row}"], [()], "english")
    assert found.span[1] - found.span[0] == len(row) > LONGEST_SNIPPET
    long = row.replace("remark", "remark " * 20)
    (found,) = snippets("oak", [f"| name | remark | price |\n|---|---|---|\n{long}"], [()], "english")
    assert found.span[1] - found.span[0] <= LONGEST_SNIPPET


def test_long_sentence_is_cut_around_the_words_between_words():
    text = "filler words " * 60 + "and the walnut table costs 640 euros here " + "more words " * 60
    found = quoted("price of the walnut table", text)
    assert "walnut table costs 640 euros" in found
    assert len(found) <= LONGEST_SNIPPET
    assert f" {found} " in f" {text}"


def test_long_text_without_spaces_is_cut_too():
    text = "x" * 2000
    assert len(quoted("x", text)) == LONGEST_SNIPPET


@pytest.mark.parametrize("text", [" " * 50_000 + "oak", "oak " * 20_000, "\t " * 20_000 + "=", "(a. " * 20_000])
def test_long_monotonous_text_takes_no_time_to_speak_of(text):
    """Settings allow long chunks, and anybody may write the texts: none may delay a search."""
    assert 0 < len(quoted("oak", text)) <= LONGEST_SNIPPET


@given(
    st.lists(st.text(alphabet="ab oak.\n#|。休", max_size=700), min_size=1, max_size=4),
    st.text(alphabet="oak ab休", max_size=12),
)
def test_snippet_is_a_part_of_its_text(texts, query):
    found = snippets(query, texts, [["oak"]] * len(texts), "english")
    assert len(found) == len(texts)
    for text, (start, end) in zip(texts, [each.span for each in found], strict=True):
        assert 0 <= start <= end <= len(text)
        assert end - start <= LONGEST_SNIPPET
        assert text[start:end] == text[start:end].strip()
        assert bool(text[start:end]) == bool(text.strip())
