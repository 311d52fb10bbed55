"""No page, e-book, notebook, program or text exhausts its reader or yields disproportionately much text."""

from __future__ import annotations

import sys
import time
import tracemalloc
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from parquetry.chunking.chunker import Chunker
from parquetry.errors import DocumentError
from parquetry.extract.allowance import CHARACTERS_FREE, CHARACTERS_PER_BYTE
from parquetry.extract.builder import has_many_marks, normalise
from parquetry.extract.html.depth import MAX_DEPTH, without_depth
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from tests.extract.hostile_markup import CLASSES

pytestmark = pytest.mark.slow

GROWN = (
    "html: combining marks", "html: nested ul", "html: nested blockquote, text", "html: nested lists",
    "html: nested lists, open", "html: nested lists, numbered", "html: nested lists, within cells",
    "html: nested definitions", "html: nested lists in quotes", "html: nested tables", "html: nested tables, two cells",
    "html: nested tables, open", "html: nested tables, rows", "html: formulas, open", "html: nested captions",
    "html: items of cards", "html: quotes of lines", "html: lists of lines", "html: empty cells",
    "html: attributes", "html: backticks in pre", "html: <?xml encoding", "html: wide row, narrow rows",
    "xhtml: <![CDATA[", "markdown: heading of \\<!--", "markdown: almost delimiter, spaces",
    "rst: grid table, wide", "rst: simple table, wide", "rst: enumerated to roman",
    "epub: <script", "epub: <!--", "epub: <", "epub: <h1>", "epub: one page again and again", "notebook: backticks",
    "text: combining marks", "text: spaces", "js: arrows", "js: strings", "py: operators", "py: nested ifs",
    "c: pointers", "cpp: templates",
)  # fmt: skip
"""classes that took at least quadratic time"""


def read(content: bytes, name: str) -> Extraction | None:
    try:
        extraction = extract(RawDocument(content, name), ExtractionSettings())
    except DocumentError:
        return None
    Chunker(ChunkingSettings(), None).split(extraction.text, extraction.parts, extraction.headings)
    return extraction


def seconds(content: bytes, name: str) -> float:
    start = time.process_time()
    read(content, name)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_what_is_hostile_is_read_or_refused_and_gives_text_in_proportion(name: str):
    content, filename = CLASSES[name](6000)
    extraction = read(content, filename)
    if extraction is not None:
        assert len(extraction.text) <= CHARACTERS_FREE + CHARACTERS_PER_BYTE * 2 * len(content)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWN)
def test_time_to_read_what_is_hostile_grows_with_its_size(name: str):
    small, filename = CLASSES[name](15_000)
    large, _ = CLASSES[name](150_000)
    read(*CLASSES[name](1000))
    least = min(seconds(small, filename) for _ in range(3))
    # A second time only if other load on the machine may have been the reason.
    assert any(seconds(large, filename) <= 25 * max(least, 0.02) for _ in range(2))


def test_elements_in_elements_without_end_keep_their_text_and_are_noted():
    content = "<body>" + "<div>word " * 3000 + "</body>"
    extraction = extract(RawDocument(content.encode(), "a.html"), ExtractionSettings())
    assert extraction.text.count("word") == 3000
    assert extraction.warnings[0].startswith("too-deep: 2488 elements are nested more than 512 levels deep")


def test_page_as_deep_as_pages_are_stays_as_it_is():
    page = "<div><p>one<p>two<ul><li><b>three<li>four</ul><a name=x><a name=y></div>" * 300
    assert without_depth(page) == (page, 0)


def deepest(html: str) -> int:
    """Return the number of elements around the innermost one, as nested by the parser."""
    depths: dict[int, int] = {}
    for node in LexborHTMLParser(html).root.traverse():
        depths[node.mem_id] = depths[node.parent.mem_id] + 1 if node.parent and node.parent.mem_id in depths else 0
    return max(depths.values())


@pytest.mark.parametrize(
    "piece",
    [
        '<a href="#"><b>', "<a href=x><b><div>x", "<b><p>x", "<i><a><u><p>x", "<nobr><b>x<div>", "<b><i></b></i>x",
        "<em><a><li>x", "<a><table><tr><td><b>", "<u><button><i>x", "<a><b><a><i><ul>x", "<p><b>x</p>y",
        "<p><i><b>x</p>y<div>", "<li><b>x</li>y", "<td><b>x</td>y",
        "<table><tr><td><b>x</table>y", "<object><b>x</object>y", "<h1><b>x</h1>y",
    ],
)  # fmt: skip
def test_parser_nests_elements_no_deeper_than_is_counted(piece: str):
    """A parser reopens the elements that an end tag closes implicitly."""
    page = without_depth(f"<body>{piece * 3000}")[0]
    assert deepest(page) <= 1.25 * MAX_DEPTH


def test_what_stands_in_scripts_comments_and_attributes_is_no_element():
    inner = "<div>" * MAX_DEPTH * 2
    page = f"<script>{inner}</script><!--{inner}--><p title='{inner}'>x</p><svg>{'<path/>' * MAX_DEPTH * 2}</svg>"
    assert without_depth(page) == (page, 0)


def test_nested_lists_beyond_measure_keep_every_word():
    content = "<ul><li>word " * 400
    extraction = extract(RawDocument(content.encode(), "a.html"), ExtractionSettings())
    assert extraction.text.count("word") == 400


def test_spans_without_end_keep_every_cell_and_repeat_none():
    rows = "".join(f"<tr><td rowspan=1000 colspan=1000>cell{n}<td>b" for n in range(3000))
    extraction = extract(RawDocument(f"<table>{rows}</table>".encode(), "a.html"), ExtractionSettings())
    assert all(f"cell{n}" in extraction.text for n in range(0, 3000, 100))
    assert len(extraction.text) < 8 * len(rows)


def test_page_of_a_book_that_is_named_again_is_read_once():
    content, filename = CLASSES["epub: small page again and again"](10_000)
    extraction = extract(RawDocument(content, filename), ExtractionSettings())
    assert extraction.text.count("Text of the page") == 1


def test_text_nested_too_deep_for_its_parser_is_kept_without_headings():
    content = "Title\n=====\n\n" + "- " * 3000 + "word\n"
    extraction = extract(RawDocument(content.encode(), "a.rst"), ExtractionSettings())
    assert "word" in extraction.text
    assert extraction.warnings == ("too-deep: the text is nested too deep: its headings were not read",)


def steps(content: bytes, name: str) -> int:
    """Count the function calls needed to read a document."""
    count = 0

    def take(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    read(content, name)
    sys.setprofile(take)
    try:
        read(content, name)
    finally:
        sys.setprofile(None)
    return count


def test_lines_that_follow_a_quotation_are_not_looked_at_again_for_each_one_around_it():
    lines = b"word\n" * 1000
    assert steps(b"> " * 1000 + lines, "a.md") < 2 * steps(b"> " * 3 + lines, "a.md")


@pytest.mark.parametrize("quotes", [1, 3, 4, 9])
def test_lines_that_follow_a_quotation_belong_to_it_however_deep_it_is(quotes: int):
    text = "> " * quotes + "quoted\ncontinued\n===\n\n# Title\n\n" + "> " * quotes + "# Quoted\n\nNext\n---\n"
    extraction = read(text.encode(), "a.md")
    assert extraction is not None
    assert [heading.title for heading in extraction.headings] == ["Title", "Next"]


def test_headings_of_a_text_are_found_without_keeping_all_that_a_parser_finds_in_it():
    content = b"# x\n" * 20_000
    read(content[:100], "a.md")
    tracemalloc.start()
    extract(RawDocument(content, "a.md"), ExtractionSettings())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150 * len(content)


def test_spanned_rows_count_for_what_the_content_finder_makes_of_them():
    rows = "<tr><td rowspan=1000>a<td>b" * 4000
    extraction = read(f"<p>{'Text of the page. ' * 40}</p><table>{rows}</table>".encode(), "a.html")
    assert extraction is not None
    assert extraction.warnings == ("the page is too large to find the main content: kept the whole page",)


@pytest.mark.parametrize("pair", ["<div><p>word</p></div>", "<p>word<br>word</p>", "<ul></ul><p>word</p>"])
def test_paragraphs_count_with_all_blocks_that_the_content_finder_compares_them_to(pair: str):
    extraction = read(f"<body>{pair * 40_000}".encode(), "a.html")
    assert extraction is not None
    assert extraction.warnings == ("the page is too large to find the main content: kept the whole page",)


@pytest.mark.parametrize("piece", ["<link>", "<script></script>", "<span></span>", "<p class=sidebar>y</p>"])
def test_text_behind_elements_that_the_content_finder_takes_out_counts_for_each_of_them(piece: str):
    extraction = read(f"<body>{(piece + 'word ' * 100) * 6000}".encode(), "a.html")
    assert extraction is not None
    assert extraction.warnings == ("the page is too large to find the main content: kept the whole page",)


def test_elements_that_are_too_deep_leave_nothing_behind_but_their_text():
    page = "<div>" * MAX_DEPTH + "<font size=1>one</font> <span hidden>two</span><p align=left>three</p>"
    assert without_depth(page)[0].endswith("<div>one two<br>three")


def test_running_heads_are_not_looked_for_on_pages_that_say_next_to_nothing():
    pages = "\f".join(f"Report\n\n\n\ntext {n}" for n in range(14_000))
    extraction = read(pages.encode(), "a.txt")
    assert extraction is not None
    assert extraction.text.count("Report") == 14_000


@pytest.mark.parametrize("name", ["sh: pipes", "cpp: angles", "js: quotes", "rs: quotes", "go: quotes"])
def test_code_that_is_ambiguous_or_broken_throughout_is_cut_at_lines(name: str):
    content, filename = CLASSES[name](30_000)
    extraction = read(content, filename)
    assert extraction is not None
    assert extraction.warnings[0].endswith(": its definitions were not read")
    assert extraction.text == content.decode().strip("\n")


def test_definition_of_a_link_ends_after_so_many_lines():
    for lines, titles in ((500, ["Title"]), (1500, ["[a]: b 'word", "Title"])):
        text = "[a]: b '" + "word\n" * lines + "'\n===\n\n# Title\n"
        extraction = read(text.encode(), "a.md")
        assert extraction is not None
        assert [heading.title[:12] for heading in extraction.headings] == titles


@pytest.mark.parametrize("keep_layout", [False, True])
@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_characters_are_normalised_as_beside_any_other(text: str, keep_layout: bool):
    beside = normalise(f"\u00e9\n{text}", keep_layout=keep_layout)
    assert normalise(text, keep_layout=keep_layout) == beside.removeprefix("\u00e9\n")


def test_cells_of_plain_characters_are_normalised_in_a_step():
    found: list[str] = []

    def seen(_frame: FrameType, event: str, called: object) -> None:
        if event == "c_call":
            found.append(getattr(called, "__name__", ""))

    sys.setprofile(seen)
    try:
        normalise("a cell")
    finally:
        sys.setprofile(None)
    assert "sub" not in found


def test_marks_without_end_are_normalised_as_the_standard_says():
    text = "a" + "\u0301\u0327\u0323" * 40 + "e\u0301"
    import unicodedata

    assert normalise(text) == unicodedata.normalize("NFC", text)
    assert has_many_marks("a" + "\u0301" * 600)
    assert not has_many_marks("—" * 600 + "é" * 600)
