"""Workbooks that cost a reader more than their size: name -> function of a size in bytes, unpacked."""

from __future__ import annotations

import struct

from tests.extract.hostile_data import File, Hostile, times
from tests.extract.hostile_office import ODF, OFFICE, relations, types, zipped

_S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def xlsx(
    sheet: str,
    *,
    strings: str = "",
    sheets: int = 1,
    before: str = "",
    after: str = "",
    parts: dict[str, str | bytes] | None = None,
) -> File:
    """A workbook with the rows of one sheet, which may be listed more than once, and additional parts."""
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
            **(parts or {}),
        },
        "book.xlsx",
    )  # fmt: skip


def cell(place: str, text: str = "x") -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def corners(place: str, *, dimension: str | None = None) -> File:
    """One cell in A1 and one elsewhere."""
    number = int(place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    told = f'<dimension ref="{dimension}"/>' if dimension else ""
    return xlsx(row(1, cell("A1")) + row(number, cell(place)), before=told)


def _merged(*ranges: str) -> str:
    told = "".join(f'<mergeCell ref="{one}"/>' for one in ranges)
    return f'<mergeCells count="{len(ranges)}">{told}</mergeCells>'


def _merged_text(size: int) -> File:
    """A long text in a cell merged over all rows, with a short cell beside each row."""
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
    """A cell repeated over the given number of columns and rows."""
    said = f'table:number-columns-repeated="{columns}" office:value-type="string"'
    one = f"<table:table-cell {said}><text:p>{text}</text:p></table:table-cell>"
    return _ods(f'<table:table-row table:number-rows-repeated="{rows}">{one}</table:table-row>')


def xls(*sheets: tuple[int, bytes]) -> File:
    """A workbook of sheets, each listed the given number of times; a sheet listed zero times is still stored."""
    globals_ = record(0x0809, struct.pack("<HHHHII", 0x0600, 5, 0, 0x07CC, 0, 6))
    listed = sum(times for times, _ in sheets)
    place = len(globals_) + listed * 14 + 4
    for times_listed, content in sheets:
        globals_ += record(0x85, struct.pack("<IHBB", place, 0, 1, 0) + b"Sh")[:14] * times_listed
        place += len(content)
    stream = (globals_ + record(0x0A) + b"".join(content for _, content in sheets)).ljust(4096, b"\0")
    return compound(stream), "a.xls"


def compound(stream: bytes) -> bytes:
    """A compound file with a workbook stored after everything else."""
    free, end, table = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    sectors = -(-len(stream) // 512)
    tables = -(-(sectors + 2) // 126)
    first = tables + 1
    numbers = [table] * tables + [end] + [n + 1 for n in range(first, first + sectors - 1)] + [end]
    numbers += [free] * (tables * 128 - len(numbers))

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        told = name.encode("utf-16-le") + b"\0\0"
        return struct.pack("<64sHBBIII36xII4x", told, len(told), kind, 1, free, free, child, start, size)

    root = entry("Root Entry", 5, 1, end, 0) + entry("Workbook", 2, free, first, len(stream)) + bytes(256)
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII109I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6,
        0, tables, tables, 0, 4096, end, 0, end, 0, *range(tables), *[free] * (109 - tables),
    )  # fmt: skip
    return header + struct.pack(f"<{len(numbers)}I", *numbers) + root + stream.ljust(sectors * 512, b"\0")


def record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def xls_sheet(*cells: tuple[int, int]) -> bytes:
    """One number in each of the given cells, by row and column."""
    numbers = b"".join(record(0x0203, struct.pack("<HHHd", row, column, 0, 1.5)) for row, column in cells)
    return record(0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 0x07CC, 0, 6)) + numbers + record(0x0A)


def xlsb(sheets: int, rows: int) -> File:
    """A workbook that lists one sheet the given number of times."""

    def binary(kind: int, content: bytes = b"") -> bytes:
        head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
        return head + bytes([len(content)]) + content

    def wide(text: str) -> bytes:
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    listed = b"".join(binary(0x9C, struct.pack("<II", 0, n + 1) + wide("r1") + wide(f"S{n}")) for n in range(sheets))
    workbook = binary(0x83) + binary(0x8F) + listed + binary(0x90) + binary(0x84)
    cells = b"".join(
        binary(0, struct.pack("<IIHBBBI", row, 0, 300, 0, 0, 0, 0)) + binary(5, struct.pack("<IId", 0, 0, 1.5))
        for row in range(rows)
    )
    area = binary(0x94, struct.pack("<IIII", 0, rows - 1, 0, 0))
    sheet = binary(0x81) + area + binary(0x91) + cells + binary(0x92) + binary(0x82)
    kind = "application/vnd.ms-excel"
    return zipped(
        {
            "[Content_Types].xml": types(
                ("/xl/workbook.bin", f"{kind}.sheet.binary.macroEnabled.main"),
                ("/xl/worksheets/sheet1.bin", f"{kind}.worksheet"),
            ),
            "_rels/.rels": relations(("r1", "officeDocument", "xl/workbook.bin")),
            "xl/workbook.bin": workbook,
            "xl/_rels/workbook.bin.rels": relations(("r1", "worksheet", "worksheets/sheet1.bin")),
            "xl/worksheets/sheet1.bin": sheet,
        },
        "book.xlsb",
    )


def _formatted(size: int) -> File:
    """Cells of many long formats."""
    count = max(1, size // 2 // 330)
    codes = "".join(
        f'<numFmt numFmtId="{200 + n}" formatCode="{("0,.#/?%E+[&gt;1];" * 20)[:240]}{n}"/>' for n in range(count)
    )
    styles = "".join(f'<xf numFmtId="{200 + n}"/>' for n in range(count))
    rows = "".join(
        f'<row r="{n + 1}"><c r="A{n + 1}" s="{n % count}"><v>{n}.5</v></c></row>' for n in range(size // 100)
    )
    sheet = f'<styleSheet xmlns="{_S}"><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>'
    return xlsx(rows, parts={"xl/styles.xml": sheet})


def _styled(sheet: str) -> File:
    styles = f'<styleSheet xmlns="{_S}"><cellXfs><xf numFmtId="0"/><xf numFmtId="9"/></cellXfs></styleSheet>'
    return xlsx(sheet, parts={"xl/styles.xml": styles})


def _comments(size: int) -> File:
    """Comments of many authors, on a sheet that is listed again."""
    count = max(1, size // 150)
    authors = "".join(f"<author>a{n}</author>" for n in range(count))
    comments = "".join(
        f'<comment ref="A{n + 1}" authorId="{n}"><text><t>a{n}:x</t></text></comment>' for n in range(count)
    )
    told = f'<comments xmlns="{_S}"><authors>{authors}</authors><commentList>{comments}</commentList></comments>'
    return xlsx(
        row(1, cell("A1")),
        sheets=50,
        parts={
            "xl/comments1.xml": told,
            "xl/worksheets/_rels/sheet1.xml.rels": relations(*[("r1", "comments", "../comments1.xml")] * 50),
        },
    )


def _annotations(size: int) -> File:
    note = '<table:table-cell office:value-type="float" office:value="1"><office:annotation><text:p>n</text:p>'
    note += "</office:annotation><text:p>1</text:p></table:table-cell>"
    return _ods("<table:table-row>" + times(note, size) + "</table:table-row>")


def _xls_notes(size: int) -> File:
    """Texts of boxes that go on, in charts that never end."""
    one = record(0x5D, struct.pack("<HHHH", 0x15, 0x12, 0x19, 1)) + record(0x01B6, bytes(10) + b"\xff\xff" + bytes(6))
    more = record(0x3C, b"\0x") * 8
    sheet = record(0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 0x07CC, 0, 6))
    sheet += (record(0x0809, bytes(16)) + one + more) * (size // 2 // 120) + record(0x0A)
    return xls((1, sheet))


CLASSES: dict[str, Hostile] = {
    "xlsx-formats": _formatted,
    "xlsx-open-styled": lambda size: _styled("<row>" + times('<c s="1" ', size) + "</row>"),
    "xlsx-styled-attributes": lambda size: _styled("<row><c " + times('s="1" ', size) + "/></row>"),
    "xlsx-styled-backwards": lambda size: _styled(
        "".join(f'<row r="{n}"><c r="A{n}" s="1"><v>1</v></c></row>' for n in range(size // 45, 0, -1))
    ),
    "xlsx-comments": _comments,
    "xls-notes": _xls_notes,
    "ods-annotations": _annotations,
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
    "xls-sheet-again": lambda size: xls((size // 2 // 14, xls_sheet(*((n, 0) for n in range(size // 2 // 18))))),
    "xls-far-corners": lambda size: xls(*[(1, xls_sheet((0, 0), (65_535, 255)))] * max(2, size // 100)),
    "xlsb-sheet-again": lambda size: xlsb(size // 2 // 30, size // 2 // 40),
    "ods-repeated-columns": lambda _: ods_repeated(1 << 30, 1),
    "ods-repeated-rows": lambda _: ods_repeated(1, 1 << 30),
    "ods-repeated-both": lambda _: ods_repeated(16_384, 1_048_576),
    "ods-repeated-within-the-limit": lambda _: ods_repeated(4000, 4000),
    "ods-repeated-text": lambda size: ods_repeated(1, 10_000, "x" * size),
    "ods-formulas": lambda size: _ods(times("<table:table-cell formula ", size)),
    "ods-tables": lambda size: _ods("<table:table-row/>", tables=size // 60),
}  # fmt: skip
