"""Workbooks are read as people see them: formats, comments, text boxes, titles, tables kept apart."""

from __future__ import annotations

import struct
from datetime import datetime

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package, pack
from parquetry.extract.sheets.notes import cell_name
from tests.extract.hostile_sheets import compound, record
from tests.extract.sheets.test_sheets import ODS, XLS, XLSX, extract, of_rows, xlsx

_BOF = struct.pack("<HHHHII", 0x0600, 5, 0, 0x07CC, 0, 6)


def filled(*rows, formats=None, **options):
    """Return a workbook of one sheet; `formats` are by column, for all rows but the first."""

    def fill(workbook):
        sheet = workbook.add_worksheet("Data")
        for number, row in enumerate(rows):
            for column, value in enumerate(row):
                code = (formats or {}).get(column) if number else None
                look = workbook.add_format({"num_format": code}) if code else None
                if isinstance(value, datetime):
                    sheet.write_datetime(number, column, value, look)
                elif value is not None:
                    sheet.write(number, column, value, look)
        options.get("beside", lambda *_: None)(workbook, sheet)

    return xlsx(fill)


def test_numbers_are_shown_by_the_format_of_their_cell():
    text = extract(
        filled(
            ["Region", "Share", "Sales", "Units", "Closed"],
            ["North", 0.256, 1234.5, 1234567, datetime(2025, 3, 14)],
            ["South", -0.01, -99.99, 12, datetime(2025, 12, 1)],
            formats={1: "0.0%", 2: "$#,##0.00", 3: "#,##0", 4: "d mmm yyyy"},
        )
    ).text
    assert "| North | 25.6% | $1,234.50 | 1,234,567 | 14 Mar 2025 |" in text
    assert "| South | -1.0% | -$99.99 | 12 | 1 Dec 2025 |" in text


def test_cells_that_do_not_begin_in_the_first_column_have_their_own_formats():
    def fill(workbook):
        sheet = workbook.add_worksheet("Data")
        sheet.write_row(3, 2, ["Part", "Share"])
        sheet.write(4, 2, "Bolt")
        sheet.write(4, 3, 0.5, workbook.add_format({"num_format": "0%"}))

    assert "| Bolt | 50% |" in extract(xlsx(fill)).text


def test_a_format_that_hides_a_number_does_not_lose_it():
    assert "| Bolt | 12 |" in extract(filled(["Part", "Cost"], ["Bolt", 12], formats={1: ";;;"})).text


def test_comments_text_boxes_and_charts_follow_the_cells():
    def beside(workbook, sheet):
        sheet.write_comment("B2", "Estimate, not final", {"author": "Ada"})
        sheet.insert_textbox(6, 1, "Subject to audit\nsecond line")
        chart = workbook.add_chart({"type": "column"})
        chart.add_series({"name": "Turnover", "values": "=Data!$B$2:$B$3"})
        chart.set_title({"name": "Sales by region"})
        sheet.insert_chart("D2", chart)

    text = extract(filled(["Region", "Sales"], ["North", 5], ["South", 6], beside=beside)).text
    before, _, after = text.partition("| South | 6 |")
    assert before
    assert "Comment on B2 by Ada: Estimate, not final" in after
    assert "Subject to audit\nsecond line" in after
    assert "Chart: Sales by region; Turnover" in after


def test_a_sheet_with_nothing_but_a_text_box_is_read():
    def fill(workbook):
        workbook.add_worksheet("Note").insert_textbox(0, 0, "Alone here")

    assert extract(xlsx(fill)).text == "# Note\n\nAlone here"


def test_a_note_that_many_sheets_refer_to_is_read_once():
    def fill(workbook):
        for name in ("One", "Two", "Three"):
            sheet = workbook.add_worksheet(name)
            sheet.write(0, 0, name)
            sheet.insert_textbox(3, 0, f"Box of {name}")

    package = Package(xlsx(fill), 1 << 24)
    shared = package.read("xl/worksheets/_rels/sheet1.xml.rels")
    content = package.repack({f"xl/worksheets/_rels/sheet{n}.xml.rels": shared for n in (2, 3)})
    assert extract(content).text.count("Box of One") == 1


def test_tables_side_by_side_are_kept_apart():
    text = extract(
        of_rows(
            ["Part", "Price", "", "City", "Head"],
            ["Bolt", 12, "", "Ulm", "Ada"],
            ["Nut", 3, "", "Bonn", "Bo"],
            ["Pin", 4],
        )
    ).text
    assert "| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n| Nut | 3 |\n| Pin | 4 |" in text
    assert "| City | Head |\n| --- | --- |\n| Ulm | Ada |\n| Bonn | Bo |" in text


def test_empty_columns_between_figures_divide_no_table():
    text = extract(
        of_rows(
            ["", "2024", "", "2023"], ["Sales", 12, "", 11], ["Costs", 8, "", 7], ["Result", 4, "", 4], name="Sheet1"
        )
    ).text
    assert "| Sales | 12 | 11 |" in text


def test_groups_of_figures_without_labels_of_their_own_stay_one_table():
    rows = [["Line", "Q1", "Q2", "", "Q3", "Q4"], ["Sales", 1, 2, "", 3, 4], ["Costs", 5, 6, "", 7, 8]]
    assert "| Sales | 1 | 2 | 3 | 4 |" in extract(of_rows(*rows)).text


def test_a_title_with_its_unit_stands_above_the_table():
    text = extract(
        of_rows(
            ["Income statement", "", "", "", "in millions"],
            ["Line", "Q1", "Q2", "Q3", "Q4"],
            ["Sales", 1, 2, 3, 4],
        )
    ).text
    assert "Income statement in millions\n\n| Line | Q1 | Q2 | Q3 | Q4 |" in text


def test_a_caption_below_data_begins_another_table():
    text = extract(
        of_rows(["Part", "Price"], ["Bolt", 12], ["Nut", 3], ["Offices"], ["City", "Desks"], ["Ulm", 20], ["Bonn", 8])
    ).text
    assert "| Nut | 3 |\n\nOffices\n\n| City | Desks |\n| --- | --- |\n| Ulm | 20 |" in text


def test_a_section_within_a_table_does_not_end_it():
    text = extract(of_rows(["Line", "Sum"], ["Cash", 5], ["Current assets"], ["Stock", 3], ["Total", 8])).text
    assert text.count("| Line | Sum |") == 1


@pytest.mark.parametrize(
    "rows",
    [
        [["A-17", "Ada Lovelace"], ["A-18", "Bo Diddley"], ["A-19", "Cy Young"]],
        [["ada@example.org", "Ulm"], ["bo@example.org", "Bonn"], ["cy@example.org", "Kiel"]],
        [["1 May 2024", "opened"], ["12 June 2024", "closed"], ["3 July 2024", "reopened"]],
    ],
    ids=["codes", "addresses", "dates"],
)
def test_a_first_row_like_the_others_is_no_header(rows):
    assert extract(of_rows(*rows, name="Sheet1")).text.startswith("|  |  |\n| --- | --- |\n")


def test_a_bold_first_row_is_the_header_whatever_it_looks_like():
    def fill(workbook):
        sheet = workbook.add_worksheet("Sheet1")
        bold = workbook.add_format({"bold": True})
        for row, values in enumerate([["Lot 1", "Lot 2"], ["Ada 5", "Bo 6"], ["Cy 7", "Di 8"]]):
            for column, value in enumerate(values):
                sheet.write(row, column, value, bold if row == 0 else None)

    assert extract(xlsx(fill)).text.startswith("| Lot 1 | Lot 2 |\n| --- | --- |")


def xls_workbook(*, locked: bool = False) -> bytes:
    """A workbook with formats, a comment and a text box."""
    code = "0.0%"
    globals_ = record(0x0809, _BOF) + (record(0x2F, bytes(6)) if locked else b"")
    globals_ += record(0x0031, struct.pack("<HHHH", 200, 0, 0x7FFF, 400) + bytes(8))
    globals_ += record(0x041E, struct.pack("<HHB", 164, len(code), 0) + code.encode())
    globals_ += record(0xE0, struct.pack("<HH", 0, 0) + bytes(16)) + record(
        0xE0, struct.pack("<HH", 0, 164) + bytes(16)
    )
    globals_ += record(0xE0, struct.pack("<HH", 0, 3) + bytes(16))
    place = len(globals_) + 4 + 8 + 2 + 4
    globals_ += record(0x85, struct.pack("<IHBB", place, 0, 2, 0) + b"S1") + record(0x0A)
    cells = record(0x0203, struct.pack("<HHHd", 1, 0, 1, 0.256))
    cells += record(0xBD, struct.pack("<HH", 1, 1) + struct.pack("<HI", 2, 1234567 << 2 | 2) + struct.pack("<H", 1))
    drawn = b""
    for number, text in ((1, b"Ada:\nCheck this"), (2, b"Boxed")):
        drawn += record(0x5D, struct.pack("<HHHH", 0x15, 0x12, 0x19, number) + bytes(14))
        drawn += record(0x01B6, struct.pack("<HH6xHH4x", 0, 0, len(text), 0)) + record(0x3C, b"\0" + text)
    drawn += record(0x1C, struct.pack("<HHHHHB", 1, 0, 0, 1, 3, 0) + b"Ada\0")
    sheet = record(0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 0x07CC, 0, 6)) + cells + drawn + record(0x0A)
    return compound((globals_ + sheet).ljust(4096, b"\0"))


def test_older_workbooks_have_formats_and_notes_too():
    text = extract(xls_workbook(), XLS).text
    assert "25.6%" in text
    assert "1,234,567" in text
    assert "Comment on A2 by Ada: Check this" in text
    assert "\n\nBoxed" in text


def test_an_older_workbook_with_a_password_is_encrypted():
    with pytest.raises(BrokenDocument) as caught:
        extract(xls_workbook(locked=True), XLS)
    assert caught.value.reason == "encrypted"


def test_opendocument_cells_show_what_they_store_as_text():
    def cell(text, kind, value=None):
        stored = f' office:value="{value}"' if value is not None else ""
        return f'<table:table-cell office:value-type="{kind}"{stored}>{text}</table:table-cell>'

    def line(text):
        return f"<text:p>{text}</text:p>"

    note = "<office:annotation><dc:creator>Ada</dc:creator><text:p>Check</text:p></office:annotation>"
    box = "<draw:frame><draw:text-box><text:p>Boxed</text:p></draw:text-box></draw:frame>"
    rows = (
        f"<table:table-row>{cell(line('Region'), 'string')}{cell(line('Share'), 'string')}</table:table-row>"
        f"<table:table-row>{cell(line('North') + box, 'string')}{cell(note + line('25.6 %'), 'percentage', 0.256)}"
        "</table:table-row>"
    )
    names = ("office", "table", "text", "draw")
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    content = pack(
        {
            "mimetype": ODS.encode(),
            "META-INF/manifest.xml": b'<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
            "content.xml": (
                f'<office:document-content {spaces} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:body>'
                f'<office:spreadsheet><table:table table:name="Sheet1">{rows}</table:table>'
                "</office:spreadsheet></office:body></office:document-content>"
            ).encode(),
        }
    )
    text = extract(content, ODS).text
    assert "| North" in text
    assert "25.6 % |" in text
    assert "Comment on B2 by Ada: Check" in text
    assert "\n\nBoxed" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<v>12</v>", b"<v>#WAT!</v>"),
        (b"<sheetData>", b'<dimension ref="A1:B"/><sheetData>'),
        (b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="here"/></mergeCells>'),
    ],
    ids=["error-value", "dimension", "merged"],
)
def test_a_workbook_that_only_the_second_reader_opens_is_read_with_a_note(old, new):
    package = Package(of_rows(["Part", "Price"], ["Bolt", 12]), 1 << 24)
    kind = b' t="e"' if old.startswith(b"<v") else b""
    sheet = package.read("xl/worksheets/sheet1.xml").replace(b'<c r="B2"', b'<c r="B2"' + kind)
    extraction = extract(package.repack({"xl/worksheets/sheet1.xml": sheet.replace(old, new)}), XLSX)
    assert "| Bolt | " in extraction.text
    assert extraction.warnings[0].startswith("read with openpyxl, because ")


@pytest.mark.parametrize(("row", "column", "name"), [(0, 0, "A1"), (3, 25, "Z4"), (0, 26, "AA1"), (9, 16383, "XFD10")])
def test_cells_have_the_names_that_spreadsheets_show(row, column, name):
    assert cell_name(row, column) == name
