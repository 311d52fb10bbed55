"""Text of office files, PDFs and images that are built to expand, and notes on the omitted rest."""

from __future__ import annotations

import gc
import time
from contextlib import suppress

import pytest

from parquetry.errors import DocumentError
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.extract import hostile_office, hostile_pdf, hostile_sheets


def read(file: tuple[bytes, str]) -> Extraction:
    return extract(RawDocument(*file), ExtractionSettings(ocr=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (hostile_sheets.corners("XFD1048576"), "too-large"),
        (hostile_sheets.corners("XFD1048576", dimension="A1:B2"), "too-large"),
        (hostile_sheets.ods_repeated(16_384, 1_048_576), "too-large"),
        (hostile_sheets.ods_repeated(4000, 4000), "too-large"),
        (hostile_sheets.CLASSES["xlsx-shared-string"](60_000), "too-large"),
        (hostile_sheets.CLASSES["xls-far-corners"](1000), "too-large"),
        (hostile_sheets.CLASSES["xls-sheet-again"](30_000), "damaged"),
        (hostile_sheets.CLASSES["ods-formulas"](3000), "damaged"),
        (hostile_office.docx_tables(2000), "too-deep"),
        (hostile_office.pptx_groups(2000), "too-deep"),
        (hostile_office.odt_lists(2000), "too-deep"),
        (lambda: hostile_pdf.png(50_000, 50_000), "too-many-pixels"),
        (lambda: hostile_pdf.png(8, 300_000), "too-many-pixels"),
        (hostile_pdf.gif(60_000, 60_000), "too-many-pixels"),
    ],
    ids=[
        "far-corner", "far-corner-untold", "all-cells-repeated", "many-cells-repeated", "shared-string",
        "far-corners-of-xls", "sheet-again-of-xls", "open-tags", "tables", "groups", "lists", "pixels", "long-picture",
        "frame",
    ],
)  # fmt: skip
def test_what_unfolds_without_end_is_refused_with_its_reason(file, reason):
    with pytest.raises(DocumentError) as refused:
        # A picture of 300 MB is not made when tests are collected.
        read(file() if callable(file) else file)
    assert refused.value.reason == reason


def test_a_dimension_that_is_too_large_is_not_believed():
    assert read(hostile_sheets.corners("B2", dimension="A1:XFD1048576")).text == "x\n\nx"


def test_a_sheet_that_is_listed_again_is_read_once():
    sheet = "".join(hostile_sheets.row(n, hostile_sheets.cell(f"A{n}"), hostile_sheets.cell(f"B{n}")) for n in (1, 2))
    extraction = read(hostile_sheets.xlsx(sheet, sheets=50))
    assert len(extraction.parts) == 1
    assert extraction.warnings == ("49 sheets without cells of their own were not read",)


def test_a_sheet_that_a_binary_workbook_lists_again_is_read_once():
    extraction = read(hostile_sheets.xlsb(50, 2))
    assert extraction.text == "# S0\n\n1.5\n1.5"
    assert extraction.warnings == ("49 sheets without cells of their own were not read",)


@pytest.mark.parametrize("rows", [3, 600])
def test_sheets_of_an_old_workbook_that_stand_beside_each_other_are_read(rows):
    sheets = [(1, hostile_sheets.xls_sheet(*((row, 0) for row in range(rows)))) for _ in range(3)]
    assert read(hostile_sheets.xls(*sheets)).text.count("1.5") == 3 * rows


def test_merged_ranges_that_overlap_are_spread_as_far_as_cells_reach():
    extraction = read(hostile_sheets.CLASSES["xlsx-many-merged"](4000))
    assert "merged ranges are not spread over all cells" in extraction.warnings[0]


def test_a_slide_that_is_listed_again_is_read_once():
    extraction = read(hostile_office.pptx(hostile_office.shape("hello"), slides=30))
    assert extraction.text == "hello"
    assert extraction.warnings == ("29 slides are listed once more and read once",)


def test_a_chart_that_is_drawn_again_is_written_once():
    assert read(hostile_office.pptx_chart(hostile_office.chart(60), frames=9)).text.count("|  | s |") == 1


def test_categories_far_apart_are_found_without_counting_up_to_them():
    levels = hostile_office.level(10**9 + 1) + hostile_office.level(10**9)
    assert "x / x" in read(hostile_office.pptx_chart(hostile_office.chart_of_levels(levels))).text


@pytest.mark.parametrize(("kind", "start"), [("lowerLetter", 999_999), ("upperRoman", 999_999)])
def test_numbers_that_no_program_writes_in_letters_are_written_in_digits(kind, start):
    assert read(hostile_office.docx_numbers(start, kind, 1)).text == "# 999999. x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "name", "small", "large"),
    [
        (hostile_office.CLASSES, "docx-tabs", 100_000, 2_000_000),
        (hostile_office.CLASSES, "docx-runs", 100_000, 2_000_000),
        (hostile_sheets.CLASSES, "xlsx-many-merged", 1_000_000, 10_000_000),
    ],
)
def test_time_to_join_what_an_editor_has_divided_grows_with_its_size(classes, name, small, large):
    def seconds(size):
        file = classes[name](size)
        gc.disable()
        start = time.process_time()
        with suppress(DocumentError):
            read(file)
        used = time.process_time() - start
        gc.enable()
        return used

    seconds(1000)
    least = min(seconds(small) for _ in range(3))
    # A second time only if other load on the machine may have been the reason.
    assert any(seconds(large) <= 2.25 * large / small * max(least, 0.02) for _ in range(2))


def test_a_footnote_that_is_referred_to_again_is_written_once():
    extraction = read(hostile_office.CLASSES["docx-notes"](2000))
    assert extraction.text.count("x" * 1000) == 1


@pytest.mark.parametrize("name", ["odt-no-number", "odt-long-number", "odt-levels"])
def test_what_should_be_a_number_and_is_none_is_no_error(name):
    assert "x" in read(hostile_office.CLASSES[name](0)).text


@pytest.mark.slow
def test_a_page_that_stands_in_a_pdf_again_and_again_is_read_as_far_as_the_size_allows():
    extraction = read(hostile_pdf.CLASSES["pdf-one-page-again"](40_000))
    assert len(extraction.text) < 2 * (100_000 + 8 * 40_000)
    assert extraction.warnings[0].endswith("were not read: they say more than their size allows")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("pdf-form-again", 60_000),
        ("pdf-nested-forms", 60_000),
        ("pdf-forms-in-a-circle", 60_000),
        ("pdf-content-again", 60_000),
        ("pdf-content-again", 2_000_000),  # more elements than pypdf reads of a list
        ("pdf-font-of-long-meanings", 60_000),
    ],
)
def test_what_a_page_of_a_pdf_draws_is_counted_each_time(name, size):
    with pytest.raises(DocumentError) as refused:
        read(hostile_pdf.CLASSES[name](size))
    assert refused.value.reason == "too-large"


def test_pages_that_draw_too_much_are_left_out_and_counted():
    content, name = hostile_pdf.pages(
        hostile_pdf.stream(hostile_pdf.shown(1)),
        kids="3 0 R 6 0 R 3 0 R",
        count=3,
        more={
            5: hostile_pdf.stream(hostile_pdf.shown(1000)),
            6: "<< /Type /Page /Parent 2 0 R /Contents [" + "5 0 R " * 1000 + "] >>",
        },
    )
    extraction = read((content, name))
    assert [part.number for part in extraction.parts] == [1, 3]
    assert extraction.warnings == ("1 page not read: more is drawn on them than the size of the document allows",)


def test_forms_that_a_page_draws_a_few_times_are_read():
    assert read(hostile_pdf.nested_forms(9, 3)).text == "word"


def test_picture_that_a_page_draws_again_and_again_is_not_rendered():
    with pytest.raises(DocumentError) as refused:
        extract(RawDocument(*hostile_pdf.CLASSES["pdf-picture-again"](60_000)), ExtractionSettings())
    assert refused.value.reason == "too-large"
