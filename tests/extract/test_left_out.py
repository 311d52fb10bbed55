"""Extraction notes omissions: files attached to a PDF, and formulas of a workbook without a stored value."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
import xlsxwriter

from parquetry.errors import SkippedDocument
from parquetry.extract import registry
from parquetry.extract.package import pack
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import line, with_attachments, with_filled_field, with_pinned_file, write_pdf

PAGE = line(72, 700, "The figures are attached.")


def extract(content: bytes, name: str = "file.pdf") -> Extraction:
    settings = ExtractionSettings.model_validate({"ocr": False})
    return registry.extract(RawDocument(content, name), settings)


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (["a.xlsx"], "1 attached file is not read: a.xlsx"),
        (["Übersicht.xlsx", "表.csv"], "2 attached files are not read: Übersicht.xlsx, 表.csv"),
        (["a.xlsx", "b.csv"], "2 attached files are not read: a.xlsx, b.csv"),
        ([f"{n}.csv" for n in range(7)], "7 attached files are not read: 0.csv, 1.csv, 2.csv, 3.csv, 4.csv and 2 more"),
        (["x\x1b[31m\n" + "y" * 500], "1 attached file is not read: x[31m " + "y" * 53 + "…"),
    ],
)
def test_attached_files_of_a_pdf_are_noted_by_name(names: Sequence[str], note: str):
    assert extract(with_attachments(write_pdf([PAGE]), names)).warnings == (note,)


def test_a_file_pinned_to_a_page_is_noted():
    content = with_pinned_file(write_pdf([PAGE, PAGE]), "plan.dwg")
    assert extract(content).warnings == ("1 attached file is not read: plan.dwg",)


def test_a_file_that_is_attached_and_pinned_is_noted_once_in_a_form_too():
    content = with_filled_field(with_attachments(write_pdf([PAGE]), ["plan.dwg"]), "Berg")
    extraction = extract(with_pinned_file(content, "plan.dwg"))
    assert extraction.warnings == ("1 attached file is not read: plan.dwg",)
    assert "Berg" in extraction.text


def test_what_only_the_second_engine_reads_has_its_attachments_noted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.pdf.reader._read_with_pdfium", lambda *_: False)
    assert extract(with_attachments(write_pdf([PAGE]), ["a.csv"])).warnings == ("1 attached file is not read: a.csv",)


def test_a_pdf_that_is_nothing_but_a_cover_for_files_says_so_when_it_is_skipped():
    with pytest.raises(SkippedDocument, match=r"its 1 page; 1 attached file is not read: a\.csv"):
        PdfExtractor().extract(
            RawDocument(with_attachments(write_pdf([b""]), ["a.csv"]), "a.pdf"), "application/pdf", ExtractionSettings()
        )


# --- formulas


def workbook(*sheets: tuple[str, Sequence[str]], head: str = "Costs") -> bytes:
    """A workbook with a word in A1 of each sheet, and the given formulas without a value below."""
    target = io.BytesIO()
    book = xlsxwriter.Workbook(target, {"in_memory": True})
    for name, formulas in sheets:
        sheet = book.add_worksheet(name)
        if head:
            sheet.write(0, 0, head)
        for row, formula in enumerate(formulas, start=1):
            sheet.write_formula(row, 0, formula, None, "")
    book.close()
    return target.getvalue()


def test_formulas_without_a_stored_value_are_noted_with_their_sheets_and_cells():
    content = workbook(("Costs & fees", ["=1+1", '=IF(B1>2,"<a>",3)', "=A2", "=A3"]), ("Plain", []), ("Sums", ["=1"]))
    assert extract(content, "a.xlsx").warnings == (
        "5 formulas have no stored value: 4 in sheet Costs & fees (A2, A3, A4, ...), 1 in sheet Sums (A2); "
        "open and save the workbook in a spreadsheet program",
    )


def test_formulas_with_a_stored_value_are_not_noted():
    target = io.BytesIO()
    book = xlsxwriter.Workbook(target, {"in_memory": True})
    sheet = book.add_worksheet()
    for row, value in enumerate([3, "three", True, 0]):
        sheet.write_formula(row, 0, "=B1", None, value)
    book.close()
    assert extract(target.getvalue(), "a.xlsx").warnings == ()


@pytest.mark.parametrize(
    ("cell", "noted"),
    [
        ('<c r="A2"><f>SUM(B1:B9)</f></c>', True),
        ('<c r="A2"><f>SUM(B1:B9)</f><v /></c>', True),
        ('<c r="A2"><f t="shared" si="0"/></c>', True),
        ('<c r="A2" t="str"><f>""</f><v></v></c>', False),
        ('<c r="A2"><f t="shared" si="0"/><v>1</v></c>', False),
    ],
)
def test_a_value_is_missing_only_if_the_cell_stores_none(cell: str, noted: bool):
    """Excel stores the empty text that a formula returns; other programs leave the element empty or omit it."""
    content = workbook(("Costs", ["=1"]))
    members = _members(content)
    part = "xl/worksheets/sheet1.xml"
    start, _, rest = members[part].decode().partition('<c r="A2">')
    members[part] = (start + cell + rest.partition("</c>")[2]).encode()
    assert bool(extract(pack(members), "a.xlsx").warnings) is noted


def test_formulas_in_a_long_sheet_are_all_counted():
    """The sheet is unpacked in blocks, which may end anywhere."""
    (note,) = extract(workbook(("Costs", [f"=SUM(B1:B{n})" for n in range(1, 5001)])), "a.xlsx").warnings
    assert note.startswith("5000 formulas have no stored value: 5000 in sheet Costs (A2, A3, A4, ...);")


def test_a_workbook_of_formulas_without_values_says_why_it_is_empty():
    with pytest.raises(SkippedDocument, match=r"filled cell; 1 formula has no stored value: 1 in sheet Costs \(A2\)"):
        extract(workbook(("Costs", ["=1"]), head=""), "a.xlsx")


def test_formulas_of_an_opendocument_sheet_are_noted_too():
    cells = (
        '<table:table-cell table:formula="of:=1+1" office:value-type="float" office:value="2"><text:p>2</text:p>'
        "</table:table-cell><table:table-cell table:formula='of:=IF(1>2;1;2)'/>"
        '<table:table-cell office:value-type="string"><text:p>Costs</text:p></table:table-cell>'
    )
    content = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:style-name="t1" table:name="R&amp;D"><table:table-row>{cells}'
        "</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>'
    )
    members = {"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest}
    extraction = extract(pack({name: text.encode() for name, text in members.items()}), "a.ods")
    assert extraction.warnings == (
        "1 formula has no stored value: 1 in sheet R&D; open and save the workbook in a spreadsheet program",
    )


def _members(content: bytes) -> dict[str, bytes]:
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
