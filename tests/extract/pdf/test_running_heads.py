"""Running heads, feet and page numbers, on PDF pages written line by line here and on pages of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from parquetry.extract.page_numbers import without_page_number
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.extract.text import PlainTextExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import line, lines, write_pdf

HEAD, FOOT = 800, 40
"""points from the lower edge of an A4 page, which is 842 points high"""


def body(page: int) -> bytes:
    """Lines in the middle of a page, different on every page."""
    words = [
        f"{word}{page} is stored in the shed beside the {word} gate" for word in ("rope", "tar", "canvas", "oakum")
    ]
    return lines(72, 700, words)


def extract(pages: Sequence[bytes], **options: object) -> Extraction:
    content = write_pdf(pages, **options)  # type: ignore[arg-type]
    settings = ExtractionSettings.model_validate({"ocr": False})
    return PdfExtractor().extract(RawDocument(content, "file.pdf"), "application/pdf", settings)


def page_lines(extraction: Extraction) -> list[list[str]]:
    """Return the lines of each page that are not part of its body."""
    texts = [extraction.text[part.start : part.end] for part in extraction.parts]
    return [[line for line in text.split("\n") if line and "stored in the shed" not in line] for text in texts]


@pytest.mark.parametrize(
    "number",
    [
        str,
        lambda n: f"- {n} -",
        lambda n: f"Page {n} of 6",
        lambda n: f"{n} / 6",
        lambda n: f"Seite {n}",
        lambda n: f"F-{n}",
        lambda n: ["i", "ii", "iii", "iv", "v", "vi"][n - 1],
        lambda n: str(n + 340),
    ],
)
@pytest.mark.parametrize("height", [HEAD, FOOT])
def test_page_numbers_are_left_out(number: Callable[[int], str], height: int):
    extraction = extract([body(n) + line(290, height, number(n)) for n in range(1, 7)])
    assert page_lines(extraction) == [[]] * 6


def test_numbers_that_follow_the_end_of_the_text_at_any_height_are_left_out():
    extraction = extract([body(n) + line(290, 600 - 37 * n, str(n)) for n in range(1, 7)])
    assert page_lines(extraction) == [[]] * 6


def test_a_head_and_a_foot_stay_once_where_they_first_stand():
    """The head or foot may be the only mention of a document's number or version."""
    pages = [
        body(n) + line(72, HEAD, "QM-2024-17 rev 4") + line(72, FOOT, f"Ropery Ltd, Bergen | {n}") for n in range(1, 7)
    ]
    assert page_lines(extract(pages)) == [["QM-2024-17 rev 4", "Ropery Ltd, Bergen"]] + [[]] * 5


def test_a_head_that_repeats_the_title_is_left_out_everywhere():
    pages = [body(n) + line(72, HEAD, "The Ropery Handbook") for n in range(1, 7)]
    assert page_lines(extract(pages, information={"Title": "The Ropery Handbook"})) == [[]] * 6


def test_heads_that_differ_on_left_and_right_pages_are_left_out():
    heads = ["The Ropery Handbook", "Safety at the rope walk"]
    pages = [body(n) + line(72, HEAD, f"{heads[n % 2]} {n}" if n % 2 else f"{n} {heads[0]}") for n in range(1, 9)]
    assert page_lines(extract(pages)) == [[heads[1]], [heads[0]]] + [[]] * 6


def test_a_head_that_changes_with_the_section_stays_once_for_each():
    names = ["Splicing of ropes"] * 4 + ["Storing of ropes"] * 4
    pages = [body(n) + line(72, HEAD, names[n - 1]) + line(500, HEAD, str(n)) for n in range(1, 9)]
    assert page_lines(extract(pages)) == [[names[0]], [], [], [], [names[4]], [], [], []]


def test_a_document_of_two_pages_loses_what_both_repeat():
    pages = [body(n) + line(72, HEAD, "Ropery Ltd, Bergen") + line(290, FOOT, f"{n} of 2") for n in (1, 2)]
    assert page_lines(extract(pages)) == [["Ropery Ltd, Bergen"], []]


def test_a_page_with_nothing_but_head_and_number_has_no_part():
    pages = [(body(n) if n != 3 else b"") + line(72, HEAD, "Ropery Ltd") + line(290, FOOT, str(n)) for n in range(1, 6)]
    assert [part.number for part in extract(pages).parts] == [1, 2, 4, 5]


def test_column_names_that_a_table_repeats_on_every_page_stay():
    rows = ["Article Price Stock", *(f"rope {i} 12.50 stored in the shed" for i in range(20))]
    edges = [line(72, HEAD, "Price list") + line(290, FOOT, str(n)) for n in range(1, 6)]
    pages = [edge + lines(72, 760, [rows[0], *(f"{n}th {row}" for row in rows[1:])]) for n, edge in enumerate(edges)]
    assert page_lines(extract(pages)) == [["Price list", rows[0]]] + [[rows[0]]] * 4


def test_column_names_above_rows_that_stand_far_apart_stay():
    rows = ["Article Price Stock", *(f"rope {i} 12.50 stored in the shed" for i in range(9))]
    pages = [lines(72, 760, [rows[0], *(f"{n}th {row}" for row in rows[1:])], pitch=40) for n in range(1, 6)]
    assert page_lines(extract(pages)) == [[rows[0]]] * 5


@pytest.mark.parametrize("title", ["Exercise {}", "Invoice for Mr Berg no. {}00{}", "{}. Knot"])
def test_titles_that_are_numbered_page_by_page_stay(title: str):
    heads = [title.format(n, n) for n in range(1, 7)]
    pages = [body(n) + line(72, HEAD, heads[n - 1], size=14) for n in range(1, 7)]
    if title.startswith("{}"):
        pages[3] = body(4)
        heads[3] = ""
    assert page_lines(extract(pages)) == [[head] if head else [] for head in heads]


def test_pages_that_are_copies_of_each_other_stay():
    page = lines(72, 760, [f"{word} must be signed here" for word in ("Rope", "Tar", "Oakum", "Canvas")], pitch=30)
    copies = [page + line(290, FOOT, str(n)) for n in (1, 2, 3)]
    assert page_lines(extract(copies)) == page_lines(extract([page])) * 3


def test_pages_that_hold_nothing_but_their_number_stay():
    assert page_lines(extract([line(290, FOOT, str(n)) for n in (1, 2, 3)])) == [["1"], ["2"], ["3"]]


def test_text_between_the_edges_stays_though_it_is_repeated():
    pages = [
        line(72, 780, f"Beginning of {n}{n}x") + line(72, 500, "None.") + line(72, 60, f"End of {n}{n}x")
        for n in range(1, 6)
    ]
    assert [found[1] for found in page_lines(extract(pages))] == ["None."] * 5


def test_pages_of_text_lose_what_is_printed_at_their_edges():
    """Older RFCs look like this."""

    def page(number: int) -> str:
        head = ["", ""] if number == 1 else ["RFC 9999              Rope Transfer Protocol            May 2031", ""]
        words = [f"   Rope{number} goes first, and then", f"   tar{number}."]
        foot = ["", "", f"Berg                      Standards Track                   [Page {number}]"]
        return "\r\n".join(head + words + foot) + "\r\n\f\r\n"

    text = "".join(map(page, range(1, 5)))
    read = PlainTextExtractor().extract(RawDocument(text.encode(), "rfc.txt"), "text/plain", ExtractionSettings()).text
    assert [read.count(words) for words in ("Berg", "Rope Transfer", "Page")] == [1, 1, 0]
    assert all(f"Rope{number} goes first, and then\n   tar{number}." in read for number in range(1, 5))


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("Page 3 of 7", ""), ("- iv -", ""), ("3 / 7", ""), ("Seite 2", ""), ("Page of", ""), ("Page", ""),
        ("ACME Page 3 of 9", "ACME"), ("Page 3 | ACME", "ACME"), ("SOP-123 rev 4", "SOP-123 rev 4"),
        ("Report of 2024", "Report of 2024"), ("Front page", "Front"), ("A" * 50_000 + "- " * 50_000, None),
    ],
)  # fmt: skip
def test_page_numbers_are_cut_from_heads_of_word_processors(head: str, left: str | None):
    assert without_page_number(head) == (left if left is not None else head.strip(" -"))
