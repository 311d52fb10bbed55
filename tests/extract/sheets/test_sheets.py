"""Sheets become tables as users see them."""

import io
import zipfile
from datetime import date, datetime, time, timedelta

import pytest
import xlsxwriter

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.grid import looks_like_names
from parquetry.extract.package import pack
from parquetry.extract.sheets.reader import SheetExtractor, shown
from parquetry.extract.sheets.workbook import reading as _reading
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


def xlsx(fill):
    target = io.BytesIO()
    workbook = xlsxwriter.Workbook(target, {"in_memory": True})
    fill(workbook)
    workbook.close()
    return target.getvalue()


def of_rows(*rows, name="Stock", start=0):
    def fill(workbook):
        sheet = workbook.add_worksheet(name)
        for number, row in enumerate(rows, start=start):
            sheet.write_row(number, 0, row)

    return xlsx(fill)


def extract(content, media_type=XLSX):
    return SheetExtractor().extract(RawDocument(content, "a.xlsx"), media_type, ExtractionSettings())


def test_every_sheet_is_a_part_with_its_name():
    def fill(workbook):
        for name in ("North", "Empty", "Sheet3"):
            workbook.add_worksheet(name)
        workbook.get_worksheet_by_name("North").write_row(0, 0, ["Part", "Price"])
        workbook.get_worksheet_by_name("North").write_row(1, 0, ["Bolt", 12])
        workbook.get_worksheet_by_name("Sheet3").write(4, 4, "alone")

    extraction = extract(xlsx(fill))
    assert [(p.kind, p.number, p.name, p.format) for p in extraction.parts] == [
        ("sheet", 1, "North", "table"),
        ("sheet", 3, "Sheet3", "table"),
    ]
    assert extraction.text == "# North\n\n| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n\nalone"
    assert [heading.title for heading in extraction.headings] == ["North"]
    assert extraction.metadata["sheets"] == 3


def test_long_table_repeats_its_header_row():
    extraction = extract(of_rows(["Part", "Price"], *([f"Bolt {number}", number] for number in range(200))))
    blocks = extraction.text.split("\n\n")[1:]
    assert len(blocks) > 2
    assert all(block.startswith("| Part | Price |\n") for block in blocks)
    assert extraction.text.count("| Bolt 199 | 199 |") == 1


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (12.0, "12"),
        (0.1 + 0.2, "0.3"),
        (1e20, "1e+20"),
        (True, "TRUE"),
        (date(2024, 5, 6), "2024-05-06"),
        (datetime(2024, 5, 6), "2024-05-06"),
        (datetime(2024, 5, 6, 7, 8), "2024-05-06 07:08"),
        (time(12, 0), "12:00"),
        (timedelta(hours=36, seconds=5), "36:00:05"),
        (-timedelta(minutes=90), "-1:30:00"),
        ("two\n lines", "two lines"),
        (None, ""),
    ],
    ids=str,
)
def test_values_are_shown_as_people_see_them(value, seen):
    assert shown(value) == seen


def test_dates_and_truth_values_survive_the_workbook():
    def fill(workbook):
        sheet = workbook.add_worksheet("S")
        sheet.write_row(0, 0, ["When", "Open"])
        sheet.write_datetime(1, 0, datetime(2024, 5, 6), workbook.add_format({"num_format": "dd.mm.yyyy"}))
        sheet.write_boolean(1, 1, False)

    assert "| 06.05.2024 | FALSE |" in extract(xlsx(fill)).text


def test_merged_cells_speak_for_every_row_but_captions_stay_one():
    def fill(workbook):
        sheet = workbook.add_worksheet("S")
        sheet.merge_range(0, 0, 0, 1, "A caption over it all")
        sheet.write_row(1, 0, ["Region", "Sales"])
        sheet.merge_range(2, 0, 3, 0, "North")
        sheet.write(2, 1, 5)
        sheet.write(3, 1, 6)

    text = extract(xlsx(fill)).text
    assert "| North | 5 |\n| North | 6 |" in text
    assert text.count("A caption over it all") == 1


def test_captions_and_notes_stand_outside_the_table():
    extraction = extract(of_rows(["Stock"], ["Part", "Price"], ["Bolt", 12], ["Prices in euros"]))
    assert extraction.text == "# Stock\n\n| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n\nPrices in euros"


def test_tables_divided_by_an_empty_row_have_their_own_headers():
    extraction = extract(of_rows(["Part", "Price"], ["Bolt", 12], [], ["City", "Head"], ["Ulm", "Ada"]))
    assert (
        "| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n\n| City | Head |\n| --- | --- |\n| Ulm | Ada |"
        in extraction.text
    )


def test_names_in_two_rows_become_one_name_per_column():
    extraction = extract(
        of_rows(["", "2023", "2023"], ["Zone", "Sales", "Profit"], [], ["North", 5, 1], ["South", 7, 2])
    )
    assert "| Zone | 2023 / Sales | 2023 / Profit |\n| --- | --- | --- |\n| North | 5 | 1 |" in extraction.text


@pytest.mark.parametrize(
    ("rows", "is_header"),
    [
        ([["Part", "Price"], ["Bolt", "1"]], True),
        ([["Part", "2023", "2024"], ["Bolt", "1", "2"]], True),
        ([["2021", "Ulm"], ["2022", "Bonn"], ["2023", "Kiel"]], False),
        ([["1", "2"], ["3", "4"]], False),
        ([["Only row", "here"]], False),
        ([["", "", "x"], ["a", "b", "c"]], False),
        ([["x", "x", "x"], ["x", "x", "x"]], False),
        ([["long " * 40, "b"], ["c", "d"]], False),
    ],
    ids=["names", "years", "years below", "numbers", "single", "gaps", "same", "sentence"],
)
def test_first_row_is_a_header_only_if_it_names_things(rows, is_header):
    assert looks_like_names(rows) is is_header


def test_hidden_sheet_is_kept_and_reported():
    def fill(workbook):
        workbook.add_worksheet("Seen").write(0, 0, "a")
        hidden = workbook.add_worksheet("Hidden")
        hidden.write(0, 0, "planted")
        hidden.hide()

    extraction = extract(xlsx(fill))
    assert "planted" in extraction.text
    assert extraction.warnings == ("sheet 2 (Hidden) is hidden; its cells are indexed",)


def test_empty_workbook_is_skipped():
    with pytest.raises(SkippedDocument) as caught:
        extract(of_rows())
    assert caught.value.reason == "empty"


@pytest.mark.slow
def test_last_row_of_the_longest_sheet_is_found():
    def fill(workbook):
        sheet = workbook.add_worksheet("S")
        sheet.write(0, 0, "top")
        sheet.write(1_048_575, 0, "bottom")

    assert extract(xlsx(fill)).text == "# S\n\ntop\n\nbottom"


def test_cells_in_opposite_corners_are_refused_before_they_fill_the_memory():
    def fill(workbook):
        sheet = workbook.add_worksheet("S")
        sheet.write(0, 0, "top")
        sheet.write(99_999, 16_383, "bottom")

    with pytest.raises(BrokenDocument) as caught:
        extract(xlsx(fill))
    assert caught.value.reason == "too-large"
    assert "100000 rows by 16384 columns" in caught.value.detail


def test_formatted_but_empty_cells_in_the_far_corner_do_no_harm():
    def fill(workbook):
        sheet = workbook.add_worksheet("S")
        sheet.write(0, 0, "top")
        sheet.write_blank(99_999, 16_383, None, workbook.add_format({"bold": True}))

    assert extract(xlsx(fill)).text == "# S\n\ntop"


def test_opendocument_sheet_is_read_with_its_endless_empty_tail():
    def cell(text, kind="string"):
        value = f'office:value-type="{kind}"' + (f' office:value="{text}"' if kind == "float" else "")
        return f"<table:table-cell {value}><text:p>{text}</text:p></table:table-cell>"

    tail = '<table:table-cell table:number-columns-repeated="16384"/>'
    rows = (
        f"<table:table-row>{cell('Part')}{cell('Price')}{tail}</table:table-row>"
        f"<table:table-row>{cell('Bolt')}{cell('12', 'float')}{tail}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="1048574">{tail}</table:table-row>'
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    content = pack(
        {
            "mimetype": ODS.encode(),
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{manifest}"/>'.encode(),
            "content.xml": (
                f"<office:document-content {spaces}><office:body><office:spreadsheet>"
                f'<table:table table:name="Stock">{rows}</table:table>'
                "</office:spreadsheet></office:body></office:document-content>"
            ).encode(),
        }
    )
    assert extract(content, ODS).text == "# Stock\n\n| Part | Price |\n| --- | --- |\n| Bolt | 12 |"


def test_core_properties_become_title_and_metadata():
    def fill(workbook):
        workbook.add_worksheet("S").write(0, 0, "a")
        workbook.set_properties({"title": "Stock list", "author": "Ada"})

    extraction = extract(xlsx(fill))
    assert extraction.title == "Stock list"
    assert extraction.metadata["author"] == "Ada"


def test_archive_that_is_no_workbook_is_damaged():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(BrokenDocument) as caught:
        extract(target.getvalue())
    assert caught.value.reason == "damaged"


XLS = "application/vnd.ms-excel"
OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (OLE2 + bytes(30) + b"\x09\0" + bytes(1000), "damaged"),
        (OLE2 + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600), "encrypted"),
    ],
    ids=["cut", "locked"],
)
def test_older_workbook_that_cannot_be_read_says_why(content, reason):
    with pytest.raises(BrokenDocument) as caught:
        extract(content, XLS)
    assert caught.value.reason == reason


class PanicException(BaseException):
    """The exception of calamine when its Rust code panics, as on some truncated workbooks; it cannot be imported."""


def test_panic_of_the_library_is_damage_and_not_the_end_of_the_process():
    with pytest.raises(BrokenDocument, match="slice index"), _reading("the workbook"):
        raise PanicException("slice index starts at 14848 but ends at 14570")


def test_interruption_while_reading_stays_an_interruption():
    with pytest.raises(KeyboardInterrupt), _reading("the workbook"):
        raise KeyboardInterrupt
