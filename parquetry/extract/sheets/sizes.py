"""Checks the unpacked size of a workbook from its parts, before calamine, which sets no limits, opens it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from xml.parsers import expat

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package

MAX_GRID_CELLS = 20_000_000
"""cells; calamine holds the rectangle around all used cells, 32 bytes each: this is 640 MB. The longest sheet that
Excel can make, 1,048,576 rows, passes with up to 19 columns."""
FREE_COPIES = 1_000_000
"""cells stored once with a count, or characters of cells that share a text, allowed in any workbook"""
MAX_COPIES = 32
"""the same per byte of the workbook's parts"""

SHEET_PART = re.compile(r"(?i)xl/worksheets/[^/]+\.xml")
_STRINGS = "xl/sharedStrings.xml"
# Each piece ends at the next bracket and is never retried, so that a search takes linear time.
_FILLED_CELL = re.compile(rb"<(?:\w{1,20}:)?c\s(?>[^<>]*?\br=[\"']([A-Z]{1,3}\d{1,7})[\"'])[^<>]*+(?<!/)>")
_SHARED = re.compile(
    rb"<(?:\w{1,20}:)?c\s(?>[^<>]*?\bt=[\"']s[\"'])[^<>]*+>\s*+<(?:\w{1,20}:)?v>\s*+(\d{1,9})\s*+</(?:\w{1,20}:)?v>"
)
_STRING = re.compile(rb"<(?:\w{1,20}:)?si[\s>]")
_CARRIED = 400
"""bytes at the end of a block that are searched again with the next one"""


def check(package: Package) -> None:
    """Refuse a workbook that unpacks to far more than it stores.

    Raises:
        BrokenDocument: `too-large`; `damaged` if the XML is not well-formed.
    """
    if "content.xml" in package:
        _check_ods(package)
        return
    cells = 0
    parts = [name for name in package.names if SHEET_PART.fullmatch(name)]
    for name in parts:
        cells += _refuse_sprawl(package, name)
    if _STRINGS in package:
        _refuse_repeated_strings(package, parts, cells)


def _refuse_sprawl(package: Package, name: str) -> int:
    """Refuse a sheet with too large a rectangle around its filled cells.

    Two cells in opposite corners of a sheet make a rectangle of 17 thousand million cells.

    Returns:
        The approximate number of filled cells.
    """
    top = left = 1 << 30
    bottom = right = count = 0
    for data in _overlapping(package, name):
        if cells := _FILLED_CELL.findall(data):
            count += len(cells)
            block_top, block_left, block_bottom, block_right = _corners(cells)
            top, left = min(top, block_top), min(left, block_left)
            bottom, right = max(bottom, block_bottom), max(right, block_right)
    if max(0, bottom - top + 1) * max(0, right - left + 1) > MAX_GRID_CELLS:
        raise BrokenDocument(
            "too-large", f"the filled cells of {name} span {bottom - top + 1} rows by {right - left + 1} columns"
        )
    return count


def _overlapping(package: Package, name: str) -> Iterator[bytes]:
    tail = b""
    for block in package.blocks(name):
        yield tail + block
        tail = block[-_CARRIED:]


def _corners(references: list[bytes]) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right of the rectangle around cells like `BC12`."""
    rows, columns = [], []
    for reference in set(references):
        letters = reference.rstrip(b"0123456789")
        column = 0
        for letter in letters:
            column = column * 26 + letter - 64
        rows.append(int(reference[len(letters) :]))
        columns.append(column)
    return min(rows), min(columns), max(rows), max(columns)


def _refuse_repeated_strings(package: Package, parts: list[str], cells: int) -> None:
    """Refuse long texts that are stored once but shown in many cells: a reader holds a copy for each cell."""
    strings = package.read(_STRINGS)
    starts = [found.start() for found in _STRING.finditer(strings)] + [len(strings)]
    sizes = [end - start for start, end in pairwise(starts)]
    most = FREE_COPIES + MAX_COPIES * (len(strings) + cells)
    if cells * max(sizes, default=0) <= most:
        return
    shown: Counter[int] = Counter()
    for part in parts:
        for data in _overlapping(package, part):
            shown.update(map(int, _SHARED.findall(data)))
    if sum(sizes[string] * times for string, times in shown.items() if string < len(sizes)) > most:
        raise BrokenDocument("too-large", "its cells share texts that are out of all proportion to their number")


def _check_ods(package: Package) -> None:
    scan = _OdsScan()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = scan.start
    parser.EndElementHandler = scan.end
    parser.CharacterDataHandler = scan.characters
    size = 0
    try:
        for block in package.blocks("content.xml"):
            size += len(block)
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BrokenDocument("damaged", f"the part content.xml is not well-formed XML: {error}") from error
    if scan.area > MAX_GRID_CELLS:
        raise BrokenDocument("too-large", f"the filled cells of a sheet span {scan.area} cells")
    if scan.copies > FREE_COPIES + MAX_COPIES * size:
        raise BrokenDocument("too-large", "cells that are stored once with a count are out of all proportion")


class _OdsScan:
    """Counts the unpacked size of the repeated rows and cells of content.xml."""

    def __init__(self) -> None:
        self.area = 0
        """cells of the largest rectangle around the used cells of a table"""
        self.copies = 0
        """cells and characters beyond those stored"""
        self._height = self._width = self._rows = 0
        self._row_repeats = self._cell_repeats = 1
        self._column = self._last = self._copied = self._once = self._text = 0
        self._in_cell = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.rpartition(":")[2]
        if kind == "table":
            self._height = self._width = self._rows = 0
        elif kind == "table-row":
            self._row_repeats = repeats(attributes, "number-rows-repeated")
            self._column = self._last = self._copied = self._once = 0
        elif kind in ("table-cell", "covered-table-cell"):
            self._cell_repeats = repeats(attributes, "number-columns-repeated")
            self._text = int(any(key.endswith("value-type") for key in attributes))
            self._in_cell = True

    def characters(self, text: str) -> None:
        if self._in_cell:
            self._text += len(text)

    def end(self, name: str) -> None:
        kind = name.rpartition(":")[2]
        if kind in ("table-cell", "covered-table-cell"):
            self._in_cell = False
            self._column += self._cell_repeats
            if self._text:
                self._last = self._column
                self._once += self._text + 1
                self._copied += (self._text + 1) * self._cell_repeats
        elif kind == "table-row":
            self._rows += self._row_repeats
            if self._last:
                self.copies += self._copied * self._row_repeats - self._once
                self._height, self._width = self._rows, max(self._width, self._last)
                self.area = max(self.area, self._height * self._width)


def repeats(attributes: dict[str, str], name: str) -> int:
    """Return the number of rows or cells that an element of ODS stands for."""
    found = next((value for key, value in attributes.items() if key.endswith(name)), "1")
    return int(found[:18]) if re.fullmatch("[0-9]+", found) else 1
