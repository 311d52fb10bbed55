"""Checks the compound files of XLS workbooks: chains of sectors, which a reader follows to their end."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection

from parquetry.errors import BrokenDocument

_HEADER = struct.Struct("<30xH28xI4xII109I")
"""base-2 logarithm of the sector size; first sectors of the table of small sectors and of the rest of the table list,
and the number of sectors of that rest; the first tables. [MS-CFB] 2.2"""
_DIRECTORY = struct.Struct("<48xI")
"""first sector of the directory"""
_ENTRY = struct.Struct("<64sHB49xII4x")
"""name, bytes of the name including the final NUL, kind, first sector and bytes of a stream. [MS-CFB] 2.6.1"""
_ROOT = 5
"""kind of the root entry, whose stream holds the small sectors"""
_SMALL = 4096
"""bytes of a stream below which it is stored in small sectors"""
_SMALL_SECTOR = 64
_SECTOR_SIZES = (9, 12)
_NO_END = "the chain of its sectors does not end"


def check_chains(content: bytes) -> None:
    """Refuse a compound file with a circular chain, which calamine would follow until memory is exhausted.

    Raises:
        BrokenDocument: `damaged`.
    """
    opened = _open(content)
    if opened is None:
        return
    sectors, table, small = opened
    _check(table)
    chain = []
    while small < len(table):
        chain.append(small)
        small = table[small]
    _check(sectors.joined(chain))


def _open(content: bytes) -> tuple[_Sectors, array[int], int] | None:
    """Return the sectors, their table, and the first sector of the small-sector table; None for other files."""
    if len(content) < _HEADER.size:
        return None
    power, small, more, _, *tables = _HEADER.unpack_from(content)
    if power not in _SECTOR_SIZES:
        return None
    sectors = _Sectors(content, 1 << power)
    while more < len(sectors):
        *listed, more = sectors[more]
        tables.extend(listed)
        sectors.count(listed)
    return sectors, sectors.joined(tables), small


def stream(content: bytes, names: Collection[str]) -> bytes:
    """Return the first stream with one of the given names in a checked compound file; empty if there is none.

    Args:
        content: a compound file that passed `check_chains`.
        names: names of streams.
    """
    opened = _open(content)
    if opened is None:
        return b""
    sectors, table, small = opened
    directory = _chained(content, _DIRECTORY.unpack_from(content)[0], table, sectors.size, sectors.size)
    root = b""
    for place in range(0, len(directory) - _ENTRY.size + 1, _ENTRY.size):
        name, length, kind, start, size = _ENTRY.unpack_from(directory, place)
        if kind == _ROOT:
            root = _chained(content, start, table, sectors.size, sectors.size)
        elif name[: max(0, length - 2)].decode("utf-16-le", "replace") in names:
            if size >= _SMALL:
                return _chained(content, start, table, sectors.size, sectors.size)[:size]
            numbers = array("I", _chained(content, small, table, sectors.size, sectors.size))
            return _chained(root, start, numbers, _SMALL_SECTOR, 0)[:size]
    return b""


def _chained(content: bytes, start: int, table: array[int], size: int, offset: int) -> bytes:
    """Return the concatenated sectors of a chain; at most as many as the table has."""
    pieces: list[bytes] = []
    while start < len(table) and len(pieces) < len(table):
        pieces.append(content[offset + start * size : offset + (start + 1) * size])
        start = table[start]
    return b"".join(pieces)


class _Sectors:
    """The sectors of a file as 32-bit numbers; a table cannot have more sectors than the file."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content = content
        self.size = size
        self._left = len(self) * (size // 4)

    def __len__(self) -> int:
        return len(self._content) // self.size - 1

    def __getitem__(self, number: int) -> array[int]:
        start = (number + 1) * self.size
        return array("I", self._content[start : start + self.size])

    def count(self, listed: list[int]) -> None:
        """Refuse more entries than the sectors can hold."""
        self._left -= len(listed)
        if self._left < 0:
            raise BrokenDocument("damaged", _NO_END)

    def joined(self, numbers: list[int]) -> array[int]:
        """Concatenate the sectors with these numbers; missing ones are left out."""
        there = [number for number in numbers if number < len(self)]
        if len(there) > len(self):
            raise BrokenDocument("damaged", _NO_END)
        whole = array("I")
        for number in there:
            whole.extend(self[number])
        return whole


def _check(table: array[int]) -> None:
    """Follow every chain of a table once; each entry is the number of the next sector."""
    walk = array("I", bytes(4 * len(table)))
    for start in range(len(table)):
        at = start
        while at < len(table) and not walk[at]:
            walk[at] = start + 1
            at = table[at]
        if at < len(table) and walk[at] == start + 1:
            raise BrokenDocument("damaged", _NO_END)
