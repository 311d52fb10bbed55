"""Ends of sentences, in prose of several languages, lists, tables and code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.search.sentences import sentences


def split(text):
    return [text[each.start : each.end] for each in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"], id="marks"),
        pytest.param("Dr. Ada met Mr. Bo at 5 p.m. on Monday. Then left.", 2, id="titles-and-times"),
        pytest.param("See Fig. 3 and No. 7, e.g. Oak vs. Elm, i.e. Trees. Next.", 2, id="english-abbreviations"),
        pytest.param("The U.S. Navy and J. R. Smith agreed. Next.", 2, id="initials"),
        pytest.param("It took till 5 p.m. The rest went home.", 2, id="abbreviation-at-the-end"),
        pytest.param("She said no. The rest agreed.", 2, id="no-is-a-word-unless-a-number-follows"),
        pytest.param("Am 3. Oktober gilt z.B. Nr. 4 bzw. Abs. 5. Sonst nicht.", 2, id="german"),
        pytest.param("It costs 3.50 euros at example.com today. Next.", 2, id="numbers-and-names"),
        pytest.param("Version 2. Then more.", 2, id="number-at-the-end"),
        pytest.param('He said "Stop." Then (see.) End[3].', ['He said "Stop."', "Then (see.)", "End[3]."], id="quotes"),
        pytest.param("Wait... What? No.", ["Wait...", "What?", "No."], id="dots"),
        pytest.param("it failed... then it worked", 1, id="dots-within"),
        pytest.param("晴れ。雨！「本当？」はい", ["晴れ。", "雨！", "「本当？」", "はい"], id="japanese"),
        pytest.param("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"], id="hindi"),
        pytest.param("هل هذا؟ نعم.", ["هل هذا؟", "نعم."], id="arabic"),
        pytest.param("1. Do it. Then that.\n2. More.", ["1. Do it.", "Then that.", "2. More."], id="numbered"),
        pytest.param("- one\n  goes on\n- two", ["- one\n  goes on", "- two"], id="items"),
        pytest.param("# Leave\nThirty days.\n## More\n", ["# Leave", "Thirty days.", "## More"], id="headings"),
        pytest.param("| a | b |\n|---|---|\n| 1. x | 2 |", ["| a | b |", "| 1. x | 2 |"], id="table"),
        pytest.param("a\tb\nc\td", ["a\tb", "c\td"], id="tabs"),
        pytest.param("```\na b\nc d\n```\nEnd.", ["a b", "c d", "End."], id="fenced"),
        pytest.param("int f() {\n  return a. B;\n}", ["int f() {", "return a. B;"], id="code"),
        pytest.param("name: Press\nbay: 4", ["name: Press", "bay: 4"], id="keys"),
        pytest.param("First.\n\nsecond paragraph", ["First.", "second paragraph"], id="paragraphs"),
        pytest.param("", [], id="empty"),
        pytest.param(" \n\n\t", [], id="blank"),
        pytest.param("---\n***", [], id="rules"),
    ],
)  # fmt: skip
def test_sentences_are_cut_where_they_end(text, expected):
    found = split(text)
    assert len(found) == expected if isinstance(expected, int) else found == expected


def test_wrapped_lines_are_one_sentence():
    text = "After a power cut the fan in bay 4 starts by itself and runs\nbackwards, as Ada\nand Bo saw. Do\nnot touch."
    assert split(text) == [text[: text.index(" Do")], "Do\nnot touch."]


def test_lines_that_end_because_they_were_meant_to_are_several():
    text = "Dust\nWear a mask near the sander\nNotes:\nAfter a power cut the fan starts by itself and runs backwards."
    assert split(text) == text.split("\n")


def test_headings_are_told():
    assert [each.heading for each in sentences("# Leave\nThirty days.")] == [True, False]


@given(st.text(alphabet="aB1 .!?\n\t|-#`。「」(){}=;", max_size=80))
def test_sentences_stand_in_order_and_lose_no_word(text):
    place = 0
    for each in sentences(text):
        assert place <= each.start < each.end <= len(text)
        assert text[each.start : each.end] == text[each.start : each.end].strip()
        between = text[place : each.start]
        assert not any(character.isalnum() for character in between) or "```" in between
        place = each.end
    assert not any(character.isalnum() for character in text[place:]) or "```" in text[place:]
