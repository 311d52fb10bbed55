"""Styles of the cells of XLS and XLSB workbooks."""

from __future__ import annotations

from collections.abc import Iterator

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package
from parquetry.extract.sheets.binary import records, wide_records
from parquetry.extract.sheets.cell_styles import Style, StyledCell, style_of

_BOF, _FONT, _FORMAT, _XF = 0x0809, 0x0031, 0x041E, 0x00E0
_BIFF8 = 0x0600
_BOLD = 600
"""weight of a font from which it is bold"""
_CELLS = frozenset({0x0006, 0x0203, 0x0204, 0x027E, 0x00FD})
"""formulas, numbers and texts, each of which starts with row, column and style. [MS-XLS] 2.4"""
_NUMBERS = 0x00BD
"""several numbers of a row"""
_WIDE_FONT, _WIDE_FORMAT, _WIDE_XF, _WIDE_XFS, _WIDE_XFS_END = 43, 44, 47, 617, 618
_WIDE_ROW = 0
_WIDE_CELLS = frozenset({2, 5, 6, 7, 8, 9})
"""numbers, texts and formulas, each of which starts with column and style. [MS-XLSB] 2.4"""


def xls_styles(workbook: bytes) -> list[Style]:
    """Return the cell styles of an XLS workbook by their number.

    Args:
        workbook: the workbook's stream.
    """
    codes: dict[int, str] = {}
    fonts: list[bool] = []
    found: list[tuple[int, int]] = []
    eighth = True
    for kind, place, size in records(workbook, 0):
        record = workbook[place : place + size]
        if kind == _BOF and size >= 2:
            eighth = _u16(record, 0) == _BIFF8
        elif kind == _FONT and size >= 8:
            fonts.append(_u16(record, 6) >= _BOLD)
        elif kind == _FORMAT and size >= 5:
            codes[_u16(record, 0)] = _text(record[2:], eighth=eighth)
        elif kind == _XF and size >= 4:
            found.append((_u16(record, 0), _u16(record, 2)))
    # There is no font of number 4.
    numbered = {number + (number > 3): bold for number, bold in enumerate(fonts)}
    return [style_of(codes.get(code), code, bold=numbered.get(font, False)) for font, code in found]


def xls_cells(workbook: bytes, start: int) -> list[StyledCell]:
    """Return the cells of a sheet in order of their rows.

    Args:
        workbook: the workbook's stream.
        start: 0-based offset of the sheet.
    """
    cells: list[StyledCell] = []
    for kind, place, size in records(workbook, start):
        if kind in _CELLS and size >= 6:
            cells.append((_u16(workbook, place), _u16(workbook, place + 2), _u16(workbook, place + 4)))
        elif kind == _NUMBERS and size >= 12:
            row, column = _u16(workbook, place), _u16(workbook, place + 2)
            cells += [(row, column + step, _u16(workbook, place + 4 + 6 * step)) for step in range((size - 6) // 6)]
    return sorted(cells)


def xlsb_styles(package: Package) -> list[Style]:
    """Return the cell styles of an XLSB workbook by their number; none if it has no readable styles."""
    try:
        content = package.read("xl/styles.bin")
    except BrokenDocument:
        return []
    codes: dict[int, str] = {}
    fonts: list[bool] = []
    styles: list[Style] = []
    within = False
    for kind, place, size in wide_records(content):
        record = content[place : place + size]
        if kind == _WIDE_FONT and size >= 6:
            fonts.append(_u16(record, 4) >= _BOLD)
        elif kind == _WIDE_FORMAT and size >= 6:
            codes[_u16(record, 0)] = record[6 : 6 + 2 * _u32(record, 2)].decode("utf-16-le", "replace")
        elif kind in (_WIDE_XFS, _WIDE_XFS_END):
            within = kind == _WIDE_XFS
        elif kind == _WIDE_XF and within and size >= 6:
            code, font = _u16(record, 2), _u16(record, 4)
            styles.append(style_of(codes.get(code), code, bold=font < len(fonts) and fonts[font]))
    return styles


def xlsb_cells(package: Package, part: str) -> Iterator[StyledCell]:
    """Yield the cells of a sheet's part in order of their rows."""
    try:
        content = package.read(part)
    except BrokenDocument:
        return
    row = 0
    for kind, place, size in wide_records(content):
        if kind == _WIDE_ROW and size >= 4:
            row = _u32(content, place)
        elif kind in _WIDE_CELLS and size >= 8:
            yield row, _u32(content, place), _u32(content, place + 4) & 0xFFFFFF


def _text(record: bytes, *, eighth: bool) -> str:
    if not eighth:
        return record[1 : 1 + record[0]].decode("cp1252", "replace")
    length, wide = _u16(record, 0), record[2] & 1
    return record[3 : 3 + length * (1 + wide)].decode("utf-16-le" if wide else "latin-1", "replace")


def _u16(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 2], "little")


def _u32(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "little")
