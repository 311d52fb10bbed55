"""Checks the sheets of XLS and XLSB workbooks before calamine, which sets no limits, unpacks them."""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator

from parquetry.errors import BrokenDocument
from parquetry.extract.compound_file import stream
from parquetry.extract.package import Package

MAX_GRID_CELLS = 20_000_000
"""cells of the rectangles around the used cells of all sheets of an XLS workbook, which are read together"""
MAX_SPARSE = 10
"""cells of a rectangle per filled cell that do not count"""

_RECORD = struct.Struct("<HH")
_CELL = struct.Struct("<HH")
_END, _SHEET = 0x0A, 0x85
_LOCKED = 0x2F
"""type of the record that says how a workbook is encrypted"""
_CELLS = frozenset(
    {0x06, 0x7E, 0xBD, 0xD6, 0xFD, 0x0203, 0x0204, 0x0205, 0x027E, 0x0406, 0x0002, 0x0003, 0x0004, 0x0005}
)
"""types of the records of filled cells, each of which starts with its row and column. [MS-XLS] 2.4"""
_SHEETS_WITHIN = "its sheets lie within each other"
_BUNDLED_SHEET = 0x9C
"""type of a sheet's record in `workbook.bin`. [MS-XLSB] 2.4.304"""


def checked_xls(content: bytes) -> bytes:
    """Return the stream of an XLS workbook; refuse one with repeated or overlapping sheets, or with too sparse ones.

    Args:
        content: a compound file that passed `check_chains`.

    Raises:
        BrokenDocument: `damaged`, `encrypted` or `too-large`.
    """
    workbook = stream(content, ("Workbook", "Book", "WORKBOOK", "BOOK"))
    if any(kind == _LOCKED for kind, _, _ in records(workbook, 0)):
        raise BrokenDocument("encrypted", "the workbook is protected with a password")
    starts = sheet_starts(workbook)
    left, sparse = len(workbook), 0
    for start in starts:
        top = first = 1 << 16
        bottom = last = count = 0
        for kind, place, size in records(workbook, start):
            left -= _RECORD.size + size
            if left < 0:
                raise BrokenDocument("damaged", _SHEETS_WITHIN)
            if kind in _CELLS and size >= _CELL.size and place + _CELL.size <= len(workbook):
                row, column = _CELL.unpack_from(workbook, place)
                top, bottom, first, last = min(top, row), max(bottom, row), min(first, column), max(last, column)
                count += 1
        if count:
            sparse += max(0, (bottom - top + 1) * (last - first + 1) - MAX_SPARSE * count)
    if sparse > MAX_GRID_CELLS:
        raise BrokenDocument("too-large", f"the few filled cells of its sheets span {sparse} cells")
    return workbook


def listed_again(package: Package) -> set[int]:
    """Return the 1-based numbers of the sheets of an XLSB workbook that share the part of an earlier sheet."""
    seen: set[str] = set()
    again = set()
    for number, name in enumerate(listed_parts(package), start=1):
        if name in seen:
            again.add(number)
        seen.add(name)
    return again


def listed_parts(package: Package) -> list[str]:
    """Return the lower-case name of the part of each sheet that an XLSB workbook lists; none if it cannot be read."""
    try:
        relations = package.xml("xl/_rels/workbook.bin.rels").iter("{*}Relationship")
        targets = {relation.get("Id"): relation.get("Target") or "" for relation in relations}
        workbook = package.read("xl/workbook.bin")
    except BrokenDocument:
        return []
    parts = (targets.get(relation, "") for relation in _bundled(workbook))
    return [posixpath.normpath(posixpath.join("/xl", part)).lstrip("/").lower() for part in parts]


def sheet_starts(workbook: bytes) -> list[int]:
    """Return the offsets of the sheets of an XLS workbook in its stream, in order."""
    return [_u32(workbook, place) for kind, place, size in records(workbook, 0) if kind == _SHEET and size >= 4]


def records(workbook: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield the type, content offset and content size in bytes of each record up to the end of a sheet."""
    while start + _RECORD.size <= len(workbook):
        kind, size = _RECORD.unpack_from(workbook, start)
        yield kind, start + _RECORD.size, size
        if kind == _END:
            return
        start += _RECORD.size + size


def wide_records(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the type, content offset and content size in bytes of each record of a part of an XLSB workbook."""
    place = 0
    while place < len(content):
        kind, place = _number(content, place, 2)
        size, place = _number(content, place, 4)
        yield kind, place, size
        place += size


def _bundled(workbook: bytes) -> Iterator[str]:
    """Yield the relation ids of the sheets of an XLSB workbook, in order."""
    for kind, place, size in wide_records(workbook):
        if kind == _BUNDLED_SHEET and size >= 12:
            length = _u32(workbook, place + 8)
            yield workbook[place + 12 : place + min(size, 12 + 2 * length)].decode("utf-16-le", "replace")


def _number(workbook: bytes, place: int, most: int) -> tuple[int, int]:
    """Read a number stored in 7 bits per byte; return it and the offset after it."""
    value = 0
    for count in range(most):
        byte = workbook[place] if place < len(workbook) else 0
        place += 1
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            break
    return value, place


def _u32(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "little")
