"""Plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import SkippedDocument
from parquetry.extract.registry import extract
from parquetry.extract.terminal import as_shown
from parquetry.extract.text import PlainTextExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(content: bytes) -> Extraction:
    return PlainTextExtractor().extract(RawDocument(content, "notes.txt"), "text/plain", ExtractionSettings())


def test_text_is_one_part_without_page_or_headings() -> None:
    extraction = read("# not a heading\r\n\r\nSchön.\r\n".encode("cp1252"))
    assert extraction.text == "# not a heading\n\nSchön."
    assert [(part.start, part.end, part.kind, part.format) for part in extraction.parts] == [
        (0, 23, "document", "text")
    ]
    assert extraction.headings == ()
    assert extraction.metadata == {"encoding": "cp1252"}
    assert extraction.warnings == ()


def test_text_of_white_space_is_skipped() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read(b" \n\t\n")
    assert caught.value.reason == "no-text"


def test_bytes_that_had_to_be_replaced_are_reported() -> None:
    assert read("grüße grüße grüße".encode() + b"\xc3").warnings


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        pytest.param("\x1b[31mERROR\x1b[0m disk \x1b[1;38;5;208moak\x1b[m full", "ERROR disk oak full", id="colours"),
        pytest.param("\x1b[2K\x1b[1Gdone\x1b[?25h", "done", id="cursor"),
        pytest.param("\x1b]0;ada@oak: ~\x07$ ls\x1b]0;ada@oak: /srv\x07", "$ ls", id="title"),
        pytest.param("see \x1b]8;;https://oak.example/a\x1b\\the page\x1b]8;;\x1b\\.", "see the page.", id="link"),
        pytest.param("\x1b(Bplain\x1b(B\x1b[m \x1b7kept\x1b8\x1bc", "plain kept", id="character sets"),
        pytest.param("N\bNA\bAM\bME\bE\n  _\bl_\bs - list, l\b_", "NAME\n  ls - list, l", id="manual page"),
        pytest.param("10%\b\b\b20%\b\b\b100%", "100%", id="counter"),
        pytest.param("abc\b\bX", "aXc", id="part of a word"),
        pytest.param("\x1b]0;never ended\nnext", "]0;never ended\nnext", id="no end"),
    ],
)
def test_output_of_a_terminal_is_read_as_shown(printed: str, shown: str) -> None:
    for lines in (1, 40):
        text = "\n".join([printed] * lines)
        for encoded in (text.encode(), f"Schön.\n{text}".encode("latin-1")):
            extraction = extract(RawDocument(encoded, "oak.log"), ExtractionSettings())
            assert extraction.media_type == "text/plain"
            assert extraction.text.removeprefix("Schön.\n") == "\n".join([shown] * lines)


@given(st.text(st.characters(exclude_characters="\x1b\b", exclude_categories=["Cs"])))
def test_text_that_no_terminal_wrote_is_left_alone(text: str) -> None:
    assert as_shown(text) == text


def test_backspaces_end_at_the_beginning_of_a_line() -> None:
    assert as_shown("ab\n\b\bX\bY") == "ab\nY"


def test_broken_sequences_are_kept_in_linear_time() -> None:
    for piece in ("\x1b[", "\x1b]", "\x1b[1;", "\x1b(", "\x1b[0", "\x1b] "):
        assert as_shown(piece * 200_000) == piece * 200_000
    assert as_shown("a\b" * 200_000) == "a"
    assert as_shown("\b" * 200_000) == ""
    assert as_shown("a" * 2_000_000 + "\nb\bc") == "a" * 2_000_000 + "\nc"
