"""The text of a document is limited by the document's size, and every cut is reported."""

from __future__ import annotations

import io
import zipfile

import pytest

from parquetry.chunking.chunker import Chunker
from parquetry.extract import registry
from parquetry.extract.allowance import (
    CHARACTERS_FREE,
    CHARACTERS_PER_BYTE,
    CHARACTERS_PER_PART,
    PARTS_FREE,
    count_unpacked,
    reading,
)
from parquetry.extract.builder import FREE_FILLING, MAX_TITLE_CHARACTERS, MOST_NAMES, TextBuilder
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings


def built(builder: TextBuilder) -> Extraction:
    return builder.build(title=None, metadata={}, media_type="text/x-test", extractor="test/1")


def test_what_a_document_gives_beyond_its_allowance_is_cut_and_counted():
    with reading(10):
        builder = TextBuilder()
        most = CHARACTERS_FREE + 10 * CHARACTERS_PER_BYTE
        for number in range(2000):
            builder.heading(1, f"Part {number}")
            builder.text("word " * 100)
        extraction = built(builder)
    assert most - 10 <= len(extraction.text) <= most
    (note,) = extraction.warnings
    assert note.startswith("cut: ")
    kept_and_cut = int(note.split()[3])
    assert kept_and_cut > 1_000_000
    assert kept_and_cut - int(note.split()[1]) == len(extraction.text)
    assert all(heading.start < len(extraction.text) for heading in extraction.headings)
    assert extraction.parts[0].end == len(extraction.text)


def test_parts_that_say_next_to_nothing_are_joined_and_counted_once_there_are_too_many():
    with reading(10_000_000):
        builder = TextBuilder()
        for number in range(1, 12_001):
            builder.part("page", number)
            if number % 2 or number < 100:
                builder.text(f"{number}")
        for number in range(12_001, 22_001):
            builder.part("page", number)
            builder.text(f"{number}")
        extraction = built(builder)
    most = PARTS_FREE + len(extraction.text) // CHARACTERS_PER_PART
    assert most - 1 <= len(extraction.parts) <= most
    assert extraction.parts[-1].end == len(extraction.text)
    kept = 6049 + 10_000 - len(extraction.parts)
    note = f"{kept} parts are joined to the one before, more than 10000 and one for each 64 characters"
    assert extraction.warnings == (note,)
    assert len(Chunker(ChunkingSettings(), None).split(extraction.text, extraction.parts, ())) <= most + 100


def test_parts_that_say_something_are_not_joined():
    with reading(10_000_000):
        builder = TextBuilder()
        for number in range(1, 12_001):
            builder.part("page", number)
            builder.text("x" * CHARACTERS_PER_PART)
        extraction = built(builder)
    assert [part.number for part in extraction.parts] == list(range(1, 12_001))
    assert extraction.warnings == ()


def test_text_within_the_allowance_is_the_same_as_without_one():
    def build() -> Extraction:
        builder = TextBuilder("code", "python")
        builder.text("x = 1  \ny = 2\t", keep_layout=True)
        builder.table([["a", "b"], ["c"]])
        return built(builder)

    with reading(10):
        bounded = build()
    assert bounded == build()


def test_what_is_unpacked_counts_as_read_also_of_what_is_within():
    with reading(10):
        outer = TextBuilder()
        with reading(5):
            inner = TextBuilder()
            count_unpacked(100_000)
            assert inner.text("a" * 4_000_000) is not None
        assert len(built(inner).text) == CHARACTERS_FREE + CHARACTERS_PER_BYTE * 100_005
        outer.text("a" * 4_000_000)
    assert len(built(outer).text) == CHARACTERS_FREE + CHARACTERS_PER_BYTE * 100_010


def test_a_packed_book_gives_all_of_its_text():
    """Compression does not count as expansion: the file really contains ten thousands of similar paragraphs."""
    page = "<body>" + "<p>The pump is opened by hand.</p>" * 30_000 + "</body>"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("a.opf", _OPF)
        archive.writestr("p.xhtml", page)
    assert len(target.getvalue()) < 20_000
    extraction = extract(RawDocument(target.getvalue(), "a.epub"), ExtractionSettings())
    assert extraction.text.count("opened") == 30_000
    assert not extraction.warnings


_OPF = """<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest>
<item id="p" href="p.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="p"/></spine></package>"""


def test_every_document_is_read_under_its_allowance(monkeypatch: pytest.MonkeyPatch):
    """The registry stops every reader that multiplies text."""

    class Multiplier:
        name, version = "multiplier", 1

        def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
            builder = TextBuilder()
            for _ in range(1000):
                builder.text(document.content.decode() * 100)
            return built(builder)

    monkeypatch.setattr(registry, "extractor_for", lambda media_type: Multiplier())
    extraction = extract(RawDocument(b"word " * 100, "a.txt"), ExtractionSettings())
    assert len(extraction.text) <= CHARACTERS_FREE + CHARACTERS_PER_BYTE * 500


def test_short_rows_under_one_wide_row_are_not_filled_up():
    builder = TextBuilder()
    builder.table([["name"] * 5000, *[["value"]] * 5000])
    text = built(builder).text
    assert text.count("value") == 5000
    assert len(text) < 3_000_000


def test_short_rows_of_a_small_table_are_filled_up():
    builder = TextBuilder()
    builder.table([["name"] * 50, *[["value"]] * (FREE_FILLING // 50 - 1)])
    assert {line.count("|") for line in built(builder).text.splitlines() if line} == {51}


def test_long_column_names_are_repeated_in_proportion_to_the_rows():
    builder = TextBuilder()
    builder.table([["name " * 2000, "n"], *[["a", "b"]] * 20_000])
    text = built(builder).text
    rows = 20_000 * len("| a | b |\n")
    assert text.count("| a | b |") == 20_000
    assert len(text) < (MOST_NAMES + 2) * rows


def test_a_heading_of_a_whole_book_is_cut_where_it_stands_beside_chunks():
    builder = TextBuilder()
    builder.part("chapter", 1, "word " * 10_000)
    builder.heading(1, "word " * 10_000)
    extraction = builder.build(title="word " * 10_000, metadata={}, media_type="text/x-test", extractor="test/1")
    assert len(extraction.text) == 50_001
    assert {len(extraction.headings[0].title), len(extraction.parts[0].name or "")} == {MAX_TITLE_CHARACTERS - 1}
    assert len(extraction.title or "") == MAX_TITLE_CHARACTERS - 1
