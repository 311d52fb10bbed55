"""Plain text."""

from __future__ import annotations

import pytest

from parquetry.errors import SkippedDocument
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
