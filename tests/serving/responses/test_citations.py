"""Marks become annotations at their places, however the text is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.responses.citations import CitationReader, CitedFile, CitedFiles, mark


def files(number: int) -> CitedFiles:
    found = CitedFiles()
    for each in range(1, number + 1):
        found.add(CitedFile(f"file-{each}", f"{each}.md"))
    return found


def read(*pieces: str, number: int = 3) -> tuple[str, list[tuple[int, str]], str]:
    """Return the text, the citations, and the text as it was streamed."""
    reader = CitationReader(files(number))
    told = [each for piece in pieces for each in reader.feed(piece)] + list(reader.finish())
    streamed = "".join(each for each in told if isinstance(each, str))
    assert [each for each in told if not isinstance(each, str)] == reader.annotations
    return reader.text, [(each["index"], each["filename"]) for each in reader.annotations], streamed


@pytest.mark.parametrize(
    ("text", "clean", "cited"),
    [
        ("Blue [cite:1].", "Blue.", [(4, "1.md")]),
        ("Blue[cite:1][cite:2] and red [cite:3]", "Blue and red", [(4, "1.md"), (4, "2.md"), (12, "3.md")]),
        ("Blue [cite:1, 2] [cite:3].", "Blue.", [(4, "1.md"), (4, "2.md"), (4, "3.md")]),
        ("Blue [cite:1][cite:1]", "Blue", [(4, "1.md")]),
        ("Naïve 😀 [cite:2]!", "Naïve 😀!", [(7, "2.md")]),
        ("[cite:1] begins", " begins", [(0, "1.md")]),
    ],
)
def test_a_mark_is_taken_out_and_its_place_is_kept(text, clean, cited):
    assert read(text) == (clean, cited, clean)


@pytest.mark.parametrize(
    "text",
    ["a[1] = [2]", "see [cite:9]", "[cite:0]", "[cite:]", "[cite:x]", "[cite:1", "[cite: , ]", "[[", "x [", "[cite:²]"],
)
def test_what_is_no_mark_stays_as_the_model_wrote_it(text):
    assert read(text) == (text, [], text)


def test_numbers_without_a_result_stay_when_others_in_the_mark_are_known():
    assert read("Blue [cite:1,9].") == ("Blue [cite:9].", [(13, "1.md")], "Blue [cite:9].")


def test_the_mark_shown_to_the_model_is_the_one_that_is_read():
    assert read(f"x {mark(2)}") == ("x", [(1, "2.md")], "x")


def test_text_is_not_held_back_longer_than_it_may_begin_a_mark():
    reader = CitationReader(files(1))
    assert list(reader.feed("all of it")) == ["all of it"]
    assert list(reader.feed(" [ci")) == []
    assert list(reader.feed("rcle")) == [" [circle"]
    assert list(reader.feed("[cite:" + "1" * 100)) == ["[cite:" + "1" * 100]


PIECES = st.lists(st.sampled_from(["[", "cite", ":", "1", "2", "9", ",", " ", "]", "a", "é", "[cite:1]", "[cite:2"]))


@given(PIECES)
def test_pieces_make_no_difference(pieces):
    assert read(*pieces) == read("".join(pieces))
