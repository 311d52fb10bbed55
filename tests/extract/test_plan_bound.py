"""Extraction and chunking stay within the upper bound that `plan` derives from a document's name and size."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.chunking.chunker import Chunker
from parquetry.embed.base import Worst
from parquetry.errors import DocumentError
from parquetry.extract.registry import extract
from parquetry.model import RawDocument
from parquetry.planning.diff import Change
from parquetry.planning.estimate import Ratios, estimate
from parquetry.settings.embedding import ChunkingSettings, EmbeddingSettings
from parquetry.settings.sections import ExtractionSettings
from tests.extract import hostile_data, hostile_office, hostile_pdf
from tests.records import item

CHUNKING = ChunkingSettings(size=200, overlap=40)
NAMES = st.sampled_from(["a.txt", "a.md", "a.py", "a.log", "makefile", "a.yaml", "a.srt", "a.vtt"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(min_size=1, max_size=9), inner, max_size=4),
    max_leaves=60,
)
TABLES = st.lists(st.lists(st.sampled_from(["", "x", "1.5"]), min_size=1, max_size=60).map(",".join), min_size=1)
TEXTS = st.one_of(
    st.text(max_size=400),
    JSON.map(json.dumps),
    st.lists(JSON.map(json.dumps), max_size=9).map("\n".join),
    TABLES.map("\n".join),
    st.text(max_size=99).map(lambda text: f"From: a\nTo: b\nDate: c\nSubject: {text}\n\n{text}"),
    st.lists(st.sampled_from(["<html>", "<table>", "<tr>", "<td>x", "<li>", "<p>", "x"]), max_size=99).map("".join),
    st.lists(st.sampled_from("\u0344\ufb2c\U0001d160\ufb03é\u2029a \n"), max_size=99).map("".join),
)
CONTENTS = st.one_of(TEXTS.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=300))


def keeps_to_the_plan(content: bytes, name: str) -> None:
    change = Change("added", "extract", "", name, "default", "docs", item(name, size=len(content)), None)
    most = estimate([change], Ratios(), CHUNKING, EmbeddingSettings(), lambda _: Worst(1, 0), lambda _: 1.0)
    assert most.unbounded == 0
    try:
        extraction = extract(RawDocument(content, name), ExtractionSettings(ocr=False))
    except DocumentError:
        return
    chunks = Chunker(CHUNKING, None).split(extraction.text, extraction.parts, extraction.headings)
    assert len(extraction.text.encode()) <= 3 * len(content)
    assert len(chunks) <= most.chunks
    assert sum(len(extraction.text[chunk.start : chunk.end].encode()) for chunk in chunks) <= most.tokens


@settings(max_examples=150, deadline=None)
@given(content=CONTENTS, name=NAMES)
def test_no_content_gives_more_than_a_plan_says_of_its_name(content, name):
    keeps_to_the_plan(content, name)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py"])
@pytest.mark.parametrize(
    "made",
    ["json-paths", "json-array-of-arrays", "csv-wide-row", "mail-attached-tables", "docx-wide-row", "text-composed"],
)
def test_hostile_content_gives_no_more_than_a_plan_says_of_its_name(made, name):
    content, _ = (hostile_data.CLASSES | hostile_office.CLASSES)[made](30_000)
    keeps_to_the_plan(content, name)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py"])
@pytest.mark.parametrize("text", [b"planted ", b"| a | b |\n", b"<p>x</p>", b'{"a": 1}\n', b"# x\n"])
def test_compressed_content_gives_no_more_than_a_plan_says_of_its_name(text, name):
    keeps_to_the_plan(gzip.compress(text * 20_000), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py"])
def test_pages_that_say_next_to_nothing_give_no_more_chunks_than_a_plan_says_of_their_name(name):
    content, _ = hostile_pdf.pages(hostile_pdf.stream(hostile_pdf.shown(1, "x")), kids="3 0 R " * 4500, count=4500)
    keeps_to_the_plan(content, name)
    extraction = extract(RawDocument(content, name), ExtractionSettings(ocr=False))
    assert extraction.warnings[-1].endswith(
        " parts are joined to the one before, more than the name of the file lets expect"
    )
    assert len(extraction.parts) == 1


def test_what_would_grow_is_read_as_it_stands_and_noted():
    content = b'{"numbers":[' + b"[1]," * 500 + b"[1]]}"
    extraction = extract(RawDocument(content, "numbers.txt"), ExtractionSettings())
    assert extraction.text == content.decode()
    assert extraction.media_type == "text/plain"
    note = "it is read as plain text: as application/json it would give more text than its name lets expect"
    assert extraction.warnings == (note,)


def test_of_an_archive_under_the_name_of_a_text_the_beginning_is_kept_and_the_rest_counted():
    content, _ = hostile_office.docx("".join(hostile_office.paragraph(f"word {n}") for n in range(2000)))
    extraction = extract(RawDocument(content, "letter.md"), ExtractionSettings())
    assert extraction.text.startswith("word 0\n\nword 1\n\n")
    assert extraction.warnings[0].startswith("cut: ")
    assert extraction.warnings[0].endswith("characters, more than the size of a file of this name allows")
