"""Workbooks that are built to cost a reader more than their size: name -> function of a size in bytes, unpacked."""

from __future__ import annotations

from tests.knowledge.extract.hostile_data import File, Hostile, times
from tests.knowledge.extract.hostile_office import ODF, OFFICE, relations, types, zipped

_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def xlsx(sheet: str, *, strings: str = "", sheets: int = 1, before: str = "", after: str = "") -> File:
    """A workbook: rows of one sheet, which may be listed more than once, and what stands around them."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    listed = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="r1"/>' for n in range(1, sheets + 1))
    return zipped(
        {
            "[Content_Types].xml": types(
                ("/xl/workbook.xml", f"{kind}.sheet.main+xml"), ("/xl/worksheets/sheet1.xml", f"{kind}.worksheet+xml"),
                ("/xl/sharedStrings.xml", f"{kind}.sharedStrings+xml"),
            ),
            "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{_S}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                ("r1", "worksheet", "worksheets/sheet1.xml"), ("r2", "sharedStrings", "sharedStrings.xml")
            ),
            "xl/sharedStrings.xml": f'<sst xmlns="{_S}">{strings}</sst>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_S}">{before}<sheetData>{sheet}</sheetData>{after}'
            "</worksheet>",
        },
        "book.xlsx",
    )  # fmt: skip


def cell(place: str, text: str = "x") -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def corners(place: str, *, dimension: str | None = None) -> File:
    """A cell in A1 and one elsewhere."""
    number = int(place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    told = f'<dimension ref="{dimension}"/>' if dimension else ""
    return xlsx(row(1, cell("A1")) + row(number, cell(place)), before=told)


def _merged(*ranges: str) -> str:
    told = "".join(f'<mergeCell ref="{one}"/>' for one in ranges)
    return f'<mergeCells count="{len(ranges)}">{told}</mergeCells>'


def _merged_text(size: int) -> File:
    """A long text in a cell that covers all rows, with a short one beside each."""
    count = max(2, size // 2 // 70)
    rows = row(1, cell("A1", "x" * (size // 2)), cell("B1"))
    rows += "".join(row(n, cell(f"B{n}")) for n in range(2, count + 1))
    return xlsx(rows, after=_merged(f"A1:A{count}"))


def _many_merged(size: int) -> File:
    count = max(2, size // 2 // 70)
    rows = "".join(row(n, cell(f"A{n}"), cell(f"B{n}")) for n in range(1, count + 1))
    return xlsx(rows, after=_merged(*["A1:XFD1048576"] * (size // 2 // 32)))


def _diagonal(size: int) -> File:
    count = min(4000, max(2, size // 80))
    names = [chr(65 + a) + chr(65 + b) + chr(65 + c) for a in range(24) for b in range(26) for c in range(26)][:count]
    return xlsx("".join(row(n + 1, cell(f"{name}{n + 1}")) for n, name in enumerate(names)))


def _shared_string(size: int) -> File:
    count = max(2, size // 2 // 60)
    rows = "".join(
        f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c><c r="B{n}"><v>{n}</v></c></row>' for n in range(1, count)
    )
    return xlsx(rows, strings=f"<si><t>{'x' * (size // 2)}</t></si>")


def _sheets_of_one_part(size: int) -> File:
    count = max(2, size // 2 // 60)
    rows = "".join(row(n, cell(f"A{n}"), cell(f"B{n}")) for n in range(1, max(2, size // 2 // 120)))
    return xlsx(rows, sheets=count)


def _ods(rows: str, *, tables: int = 1) -> File:
    table = f'<table:table table:name="a">{rows}</table:table>' * tables
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{ODF}:manifest:1.0"/>',
            "content.xml": f'<office:document-content xmlns:office="{ODF}:office:1.0" xmlns:table="{ODF}:table:1.0" '
            f'xmlns:text="{ODF}:text:1.0"><office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>'
            "</office:document-content>",
        },
        "book.ods",
    )


def ods_repeated(columns: int, rows: int, text: str = "x") -> File:
    """A cell that says to stand in so many columns and rows."""
    said = f'table:number-columns-repeated="{columns}" office:value-type="string"'
    one = f"<table:table-cell {said}><text:p>{text}</text:p></table:table-cell>"
    return _ods(f'<table:table-row table:number-rows-repeated="{rows}">{one}</table:table-row>')


CLASSES: dict[str, Hostile] = {
    "xlsx-far-corner": lambda _: corners("XFD1048576"),
    "xlsx-far-corner-untold": lambda _: corners("XFD1048576", dimension="A1:B2"),
    "xlsx-within-the-limit": lambda _: corners("EFG5200"),
    "xlsx-told-wide": lambda _: corners("B2", dimension="A1:XFD1048576"),
    "xlsx-diagonal": _diagonal,
    "xlsx-merged-text": _merged_text,
    "xlsx-many-merged": _many_merged,
    "xlsx-shared-string": _shared_string,
    "xlsx-sheets-of-one-part": _sheets_of_one_part,
    "xlsx-cells-without-place": lambda size: xlsx(
        "<row>" + times('<c t="inlineStr"><is><t>x</t></is></c>', size) + "</row>"
    ),
    "xlsx-rows": lambda size: xlsx(times('<row><c><v>1</v></c><c><v>2</v></c></row>', size)),
    "xlsx-open-formulas": lambda size: xlsx("<row>" + times("<c><f>1</f><c ", size) + "</row>"),
    "ods-repeated-columns": lambda _: ods_repeated(1 << 30, 1),
    "ods-repeated-rows": lambda _: ods_repeated(1, 1 << 30),
    "ods-repeated-both": lambda _: ods_repeated(16_384, 1_048_576),
    "ods-repeated-within-the-limit": lambda _: ods_repeated(4000, 4000),
    "ods-repeated-text": lambda size: ods_repeated(1, 10_000, "x" * size),
    "ods-formulas": lambda size: _ods(times("<table:table-cell formula ", size)),
    "ods-tables": lambda size: _ods("<table:table-row/>", tables=size // 60),
}  # fmt: skip
