"""PDF: ruled tables become Markdown tables where their rows are certain, and stay lines where they are not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from parquetry.extract import registry
from parquetry.extract.pdf.lattice import Rule, lattices
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.extract import hostile_pdf
from tests.files.pdf_writer import line, lines, rule, ruled, write_pdf

SETTINGS = ExtractionSettings.model_validate({"ocr": False})
ACROSS = [72, 200, 280, 360]
DOWN = [700, 680, 660, 640]
ROWS = [["Part", "2023", "2024"], ["Crane hooks", "1,204", "1,377"], ["Steel rope", "98", "110"]]
MARKDOWN = "| Part | 2023 | 2024 |\n| --- | --- | --- |\n| Crane hooks | 1,204 | 1,377 |\n| Steel rope | 98 | 110 |"


def extract(*pages: bytes) -> Extraction:
    return PdfExtractor().extract(RawDocument(write_pdf(pages), "file.pdf"), "application/pdf", SETTINGS)


def cells(rows: list[list[str]], across: list[int] = ACROSS, down: list[int] = DOWN) -> bytes:
    return b"".join(
        line(across[column] + 4, down[row] - 14, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
        if text
    )


@pytest.mark.parametrize(
    "drawn",
    [
        ruled(ACROSS, DOWN),
        ruled(ACROSS, DOWN, thin_boxes=True),
        b"".join(rule(72, y, 360, y) for y in DOWN) + b"".join(rule(x, 640, x, 700) for x in (200, 280)),
        b"0.5 w " + b"".join(
            b"%d %d %d %d re S\n" % (left, low, right - left, 20)
            for low in DOWN[1:]
            for left, right in pairwise(ACROSS)
        ),
        b"1 0 0 1 10 20 cm 0.5 w " + b"".join(
            b"%d %d %d %d re S\n" % (left - 10, low - 20, right - left, 20)
            for low in DOWN[1:]
            for left, right in pairwise(ACROSS)
        ) + b"1 0 0 1 -10 -20 cm\n",
        b"1 0 0 1 10 20 cm\n" + ruled([x - 10 for x in ACROSS], [y - 20 for y in DOWN]) + b"1 0 0 1 -10 -20 cm\n",
    ],
    ids=["lines", "thin boxes", "no frame at the sides", "a box for each cell", "moved boxes", "moved lines"],
)  # fmt: skip
def test_a_ruled_table_is_a_markdown_table_between_its_paragraphs(drawn: bytes):
    page = line(72, 740, "Sales by part are shown below.") + drawn + cells(ROWS)
    extraction = extract(page + line(72, 600, "They grew."))
    assert extraction.text == f"Sales by part are shown below.\n\n{MARKDOWN}\n\nThey grew."
    assert [part.format for part in extraction.parts] == ["markdown"]


def test_text_that_wraps_within_a_cell_is_one_cell_and_its_divided_word_is_joined():
    down = [700, 680, 640, 620]
    page = ruled(ACROSS, down) + cells([ROWS[0], [], ROWS[2]], down=down)
    page += lines(76, 668, ["Crane hooks of stain-", "less steel"]) + line(204, 668, "1,204") + line(284, 668, "1,377")
    assert "\n| Crane hooks of stainless steel | 1,204 | 1,377 |\n" in extract(page).text


def test_a_value_of_merged_cells_stands_in_every_column_that_it_covers():
    drawn = ruled(ACROSS, DOWN[1:]) + rule(72, 700, 360, 700) + b"".join(rule(x, 680, x, 700) for x in (72, 200, 360))
    page = (
        drawn
        + line(76, 686, "Part")
        + line(204, 686, "Pieces sold")
        + cells([["", "2023", "2024"], ROWS[1]], down=DOWN[1:])
    )
    assert extract(page).text.startswith("| Part | Pieces sold / 2023 | Pieces sold / 2024 |\n")


def test_a_title_in_the_first_row_stands_above_the_table():
    drawn = ruled(ACROSS, DOWN) + rule(72, 720, 360, 720) + rule(72, 700, 72, 720) + rule(360, 700, 360, 720)
    assert extract(drawn + line(76, 706, "Sales by part") + cells(ROWS)).text == f"Sales by part\n\n{MARKDOWN}"


def test_lines_of_numbers_without_rules_between_them_are_rows():
    page = ruled(ACROSS, [700, 680, 640]) + cells([ROWS[0]])
    for column, texts in zip(ACROSS, zip(*ROWS[1:], strict=True), strict=False):
        page += lines(column + 4, 668, texts)
    assert extract(page).text == MARKDOWN


def test_a_long_table_repeats_the_names_of_its_columns():
    down = list(range(800, 40, -15))
    rows = [["Part", "2023", "2024"]] + [[f"Crane hook number {i}", f"{i}", f"{i + 1}"] for i in range(len(down) - 2)]
    text = extract(ruled(ACROSS, down) + cells(rows, down=down)).text
    assert text.count("| Part | 2023 | 2024 |\n| --- |") == text.count("\n\n") + 1 > 1
    assert all(f"| Crane hook number {i} | {i} | {i + 1} |" in text for i in range(len(down) - 2))


def test_a_table_that_goes_on_over_pages_keeps_the_names_of_its_columns_on_each():
    head = line(72, 740, "Sales by part are shown below.")
    first = head + ruled(ACROSS, DOWN) + cells(ROWS)
    second = ruled(ACROSS, DOWN) + cells([["Wire", "7", "9"], ["Bolts", "61", "75"], ["Nuts", "60", "74"]])
    third = ruled(ACROSS, DOWN[1:]) + cells([["Pins", "5", "6"], ["Rings", "8", "3"]], down=DOWN[1:])
    names = "| Part | 2023 | 2024 |\n| --- | --- | --- |\n"
    text = extract(first, second, third + line(72, 600, "They grew.")).text
    assert names + "| Wire | 7 | 9 |" in text
    assert names + "| Pins | 5 | 6 |" in text


@pytest.mark.parametrize(
    ("below", "above", "across"),
    [
        (line(72, 600, "They grew."), b"", ACROSS),
        (b"", line(72, 740, "Those of others:"), ACROSS),
        (b"", b"", [72, 190, 280, 360]),
    ],
    ids=["text below the first", "text above the second", "other columns"],
)
def test_another_table_on_the_next_page_gets_no_names_of_the_first(below: bytes, above: bytes, across: list[int]):
    first = line(72, 740, "Sales by part are shown below.") + ruled(ACROSS, DOWN) + cells(ROWS) + below
    second = ruled(across, DOWN) + cells([["Wire", "7", "9"], ["Bolts", "61", "75"], ["Nuts", "60", "74"]], across)
    assert "|  |  |  |\n| --- | --- | --- |\n| Wire | 7 | 9 |" in extract(first, above + second).text


def plain(page: bytes) -> list[str]:
    extraction = extract(page)
    assert [part.format for part in extraction.parts] == ["text"]
    return extraction.text.split("\n")


def test_a_table_with_rules_below_its_rows_only_stays_lines_with_label_and_value():
    page = b"".join(rule(72, y, 360, y) for y in DOWN) + cells(ROWS)
    assert plain(page) == [" ".join(row) for row in ROWS]


@pytest.mark.parametrize(
    "missing",
    [
        line(290, 686, "2023") + line(330, 686, "2024") + line(290, 666, "1,204") + line(330, 666, "1,377"),
        line(270, 686, "2023 crosses") + line(284, 666, "1,204"),
    ],
    ids=["two columns without a rule between", "a word across an edge"],
)
def test_a_table_whose_columns_are_uncertain_stays_lines(missing: bytes):
    page = ruled(ACROSS, DOWN) + line(76, 686, "Part") + line(204, 686, "Unit") + line(76, 666, "Hooks") + missing
    assert not any(text.startswith("|") for text in plain(page + line(76, 646, "Rope") + line(204, 646, "m")))


@pytest.mark.parametrize("painted", [b"f", b"W n"], ids=["backgrounds", "clips"])
def test_cells_without_a_drawn_edge_stay_lines(painted: bytes):
    boxes = b"".join(
        b"q %d %d %d 20 re %b Q\n" % (left, low, right - left, painted)
        for low in DOWN[1:]
        for left, right in pairwise(ACROSS)
    )
    assert plain(b"0.9 g " + boxes + b"0 g " + cells(ROWS)) == [" ".join(row) for row in ROWS]


def test_rules_that_frame_parts_of_a_page_are_no_table():
    paragraph = ["The keeper writes the number of each crate in the book beside the door of the hall"] * 20
    page = ruled([60, 300, 560], [820, 420, 40]) + lines(66, 800, [text[:45] for text in paragraph])
    page += lines(306, 800, [text[:50] for text in paragraph]) + lines(66, 400, [text[:45] for text in paragraph])
    assert not any(text.startswith("|") for text in plain(page + lines(306, 400, [text[:50] for text in paragraph])))


def test_a_ruled_head_that_runs_through_the_pages_is_left_out_as_before():
    head = ruled([72, 300, 500], [820, 800, 780])
    head += line(76, 806, "Crane manual") + line(304, 806, "Revision 7") + line(76, 786, "Trondheim")
    bodies = [
        lines(72, 700, [f"{text} {number}" for text in ("Hooks are checked", "Ropes are oiled")]) for number in "ABCD"
    ]
    pages = [head + line(304, 786, f"Page {number} of 4") + body for number, body in enumerate(bodies, start=1)]
    text = extract(*pages).text
    assert text.count("Revision 7") == 1
    assert "Page 3" not in text
    assert "|" not in text


def test_a_small_table_in_large_type_is_no_heading():
    rows = [["Manufacturer", "Warehouse"], ["Sandnes Kranfabrikk", "Trondheim harbour"]]
    across, down = [72, 220, 380], DOWN[:3]
    large = b"".join(
        line(x + 4, y - 15, text, 14)
        for y, texts in zip(down, rows, strict=False)
        for x, text in zip(across, texts, strict=False)
    )
    below = lines(72, 600, ["The warehouse holds spare parts for nine years."] * 12)
    assert extract(ruled(across, down) + large + below).headings == ()
    assert len(extract(large + below).headings) == 1


def test_cells_that_are_no_rectangles_and_drawings_are_no_tables():
    edges = [Rule(0, 0, 40), Rule(40, 0, 40)]
    assert len(lattices([*edges, Rule(20, 0, 40)], [*edges, Rule(20, 0, 40)])) == 1
    assert lattices([*edges, Rule(20, 0, 20)], [*edges, Rule(20, 20, 40)]) == []
    many = [Rule(6 * i, 0, 6000) for i in range(120)]
    assert len(lattices(many[:80], many[:30])) == 1
    assert lattices(many, many[:30]) == []


@pytest.mark.parametrize(("count", "found"), [(30, 30), (40, 0)])
def test_a_page_of_very_many_rules_is_a_drawing(count: int, found: int):
    small = [Rule(10 * i, 30 * (i // 3), 30 * (i // 3) + 20) for i in range(3 * count)]
    assert len(lattices(small, small)) == found


@pytest.mark.slow
def test_tables_stay_lines_from_the_page_on_at_which_the_document_has_drawn_too_many_rules():
    drawing = b"".join(rule(72, 300, 360, 300) + rule(72, 300, 72, 700) for _ in range(950))
    table = ruled(ACROSS, DOWN) + cells(ROWS)
    extraction = extract(table, *[drawing + line(72, 100, f"Drawing {number}") for number in range(60)], table)
    assert extraction.text.count(MARKDOWN) == 1
    assert extraction.text.endswith("\n".join(" ".join(row) for row in ROWS))
    assert extraction.warnings == ("tables from page 54 on stay lines of text: too many rules are drawn",)


@pytest.mark.parametrize(("count", "tabular"), [(1_900, True), (2_100, False)])
def test_a_table_on_a_page_of_very_many_lines_stays_lines(count: int, tabular: bool):
    form = hostile_pdf.form("BT /F 0.3 Tf 1 0 0 1 590 840 Tm 0.4 TL\n" + "(a) Tj T*\n" * count + "ET")
    content, name = hostile_pdf.drawing(hostile_pdf.filled_table(2, 3) + "/X Do", "/X 5 0 R", {5: form})
    extraction = PdfExtractor().extract(RawDocument(content, name), "application/pdf", SETTINGS)
    assert ("| x | x |" in extraction.text) == tabular


def test_a_table_in_a_form_is_found_where_the_form_is_drawn():
    form = hostile_pdf.form(hostile_pdf.filled_table(2, 3))
    content, name = hostile_pdf.drawing("0.5 0 0 0.5 100 150 cm /X Do", "/X 5 0 R", {5: form})
    extraction = PdfExtractor().extract(RawDocument(content, name), "application/pdf", SETTINGS)
    assert extraction.text.count("| x | x |") == 3


def test_values_of_merged_cells_that_are_not_spread_are_counted():
    hostile = RawDocument(*hostile_pdf.CLASSES["pdf-merged-cells-again"](600))
    extraction = registry.extract(hostile, SETTINGS)
    assert any("merged cells are not spread over all columns and rows" in warning for warning in extraction.warnings)
