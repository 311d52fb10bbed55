"""The look of the cells of a sheet: their number formats, and whether they are bold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package
from parquetry.extract.sheets.number_formats import BUILT_IN, NumberFormat, number_format

_PART = "xl/styles.xml"
_REFERENCE = re.compile(rb"([A-Z]{1,3})(\d{1,7})")
# Each piece ends at the next bracket, so that a search takes linear time.
_STYLED_CELL = re.compile(
    rb"<(?:\w{1,20}:)?c\s(?=[^<>]*?\bs=[\"'](\d{1,6})[\"'])[^<>]*?\br=[\"']([A-Z]{1,3}\d{1,7})[\"']"
)
_CARRIED = 400
"""bytes at the end of a block that are searched again with the next one"""

StyledCell = tuple[int, int, int]
"""row, column and style of a cell, 0-based"""


@dataclass(frozen=True, slots=True)
class Style:
    """The look of some cells."""

    format: NumberFormat | None
    """None if numbers are shown as they are stored"""
    bold: bool


PLAIN = Style(None, bold=False)


class RowStyles:
    """Gives the styles of one row after the other.

    Args:
        cells: cells with styles in order of their rows; a row that comes too late is left out.
        styles: styles by number.
    """

    def __init__(self, cells: Iterable[StyledCell], styles: list[Style]) -> None:
        self._cells = iter(cells)
        self._styles = styles
        self._next = next(self._cells, None)

    def of(self, row: int) -> list[tuple[int, Style]]:
        """Return the columns and styles of a row; rows are asked for in ascending order."""
        found = []
        while self._next is not None and self._next[0] <= row:
            if self._next[0] == row and self._next[2] < len(self._styles):
                found.append((self._next[1], self._styles[self._next[2]]))
            self._next = next(self._cells, None)
        return found


def no_styles() -> RowStyles:
    return RowStyles((), [])


def xlsx_styles(package: Package) -> list[Style]:
    """Return the cell styles of an XLSX workbook by their number; none if it has no readable styles."""
    try:
        root = package.xml(_PART)
    except BrokenDocument:
        return []
    codes = {one.get("numFmtId"): one.get("formatCode") or "" for one in root.iter("{*}numFmt")}
    fonts = [
        any(bold.get("val", "1") not in ("0", "false") for bold in font.iter("{*}b"))
        for font in root.iterfind("{*}fonts/{*}font")
    ]
    styles = []
    for xf in root.iterfind("{*}cellXfs/{*}xf"):
        number, font = xf.get("numFmtId", "0"), xf.get("fontId", "0")
        bold = font.isdecimal() and int(font[:9]) < len(fonts) and fonts[int(font[:9])]
        styles.append(Style(_format(codes.get(number), number), bold=bool(bold)))
    return styles


def _format(code: str | None, number: str) -> NumberFormat | None:
    if code is None and number.isdecimal():
        code = BUILT_IN.get(int(number[:9]))
    return number_format(code) if code else None


def style_of(code: str | None, number: int, *, bold: bool) -> Style:
    """Return the style of a format that a binary workbook stores by number.

    Args:
        code: the format, if the workbook spells it out.
        number: number of the format.
        bold: True if the cell's font is bold.
    """
    return Style(_format(code, str(number)), bold=bold)


def xlsx_cells(package: Package, part: str, styles: list[Style]) -> Iterator[StyledCell]:
    """Yield the cells of a sheet's part whose style changes how they look."""
    telling = {number for number, style in enumerate(styles) if style != PLAIN}
    if not telling:
        return
    last = (-1, -1)
    for data in _overlapping(package, part):
        for style, reference in _STYLED_CELL.findall(data):
            if (number := int(style)) in telling:
                place = _place(reference)
                # The end of a block is searched twice.
                if place > last:
                    last = place
                    yield *place, number


def _overlapping(package: Package, part: str) -> Iterator[bytes]:
    tail = b""
    for block in package.blocks(part):
        yield tail + block
        tail = block[-_CARRIED:]


def _place(reference: bytes) -> tuple[int, int]:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return -1, -1
    column = 0
    for letter in match[1]:
        column = column * 26 + letter - 64
    return int(match[2]) - 1, column - 1
