"""Compound files of older office programs: their chains of sectors are checked, and their streams read."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from parquetry.errors import BrokenDocument

_HEADER = struct.Struct("<30xH28xI4xII109I")
"""base-2 logarithm of the sector size; first sectors of the table of small sectors and of the rest of the table list,
and the number of sectors of that rest; the first tables. [MS-CFB] 2.2"""
_DIRECTORY = struct.Struct("<48xI")
"""first sector of the directory"""
_ENTRY = struct.Struct("<64sHBxIII36xII4x")
"""name, bytes of the name including the final NUL, kind, the entries before, after and below it, first sector and bytes
of a stream. [MS-CFB] 2.6.1"""
_STREAM = 2
_ROOT = 5
"""kind of the root entry, whose stream holds the small sectors"""
_SMALL = 4096
"""bytes of a stream below which it is stored in small sectors"""
_SMALL_SECTOR = 64
_SECTOR_SIZES = (9, 12)
MAX_READ = 4
"""bytes read of streams for each byte of the file, and times that each entry of the directory is listed on average"""
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """Stream or storage in the directory of a compound file."""

    name: str
    kind: int
    before: int
    after: int
    below: int
    """numbers of the entries that sort before and after it, and of one within it"""
    start: int
    """first sector"""
    size: int
    """bytes"""


class CompoundFile:
    """The storages and streams of a compound file, which are like folders and files.

    Args:
        content: the file.

    Raises:
        BrokenDocument: `damaged`.
    """

    def __init__(self, content: bytes) -> None:
        check_chains(content)
        opened = _open(content)
        if opened is None:
            raise BrokenDocument("damaged", "it has no directory of streams")
        self._content = content
        self._sectors, self._table, self._small_start = opened
        directory = self._chain(_DIRECTORY.unpack_from(content)[0])
        self._entries = [_entry(directory, place) for place in range(0, len(directory) - _ENTRY.size + 1, _ENTRY.size)]
        root = next((entry for entry in self._entries if entry.kind == _ROOT), None)
        self._small = self._chain(root.start) if root else b""
        self._numbers: array[int] | None = None
        self._left = MAX_READ * len(content)
        self._listings_left = MAX_READ * len(self._entries)

    def storage(self, number: int = 0) -> dict[str, int]:
        """Return the entries of a storage: name -> number; without a number, those of the file itself.

        Raises:
            BrokenDocument: `damaged`: storages share so many entries that they have more than the directory explains.
        """
        found: dict[str, int] = {}
        waiting, seen = [self._entries[number].below] if number < len(self._entries) else [], set()
        while waiting:
            each = waiting.pop()
            if each >= len(self._entries) or each in seen:
                continue
            seen.add(each)
            self._listings_left -= 1
            if self._listings_left < 0:
                raise BrokenDocument("damaged", "its storages lie over each other")
            entry = self._entries[each]
            found.setdefault(entry.name, each)
            waiting += [entry.after, entry.before]
        return found

    def is_stream(self, number: int) -> bool:
        """Return True for a stream, False for a storage."""
        return self._entries[number].kind == _STREAM

    def streams(self) -> Iterator[tuple[str, int]]:
        """Yield name and number of every stream, in any storage."""
        for number, entry in enumerate(self._entries):
            if entry.kind == _STREAM:
                yield entry.name, number

    def read(self, number: int) -> bytes:
        """Return the bytes of a stream.

        Raises:
            BrokenDocument: `damaged`: streams share so many sectors that they have more bytes than the file explains.
        """
        entry = self._entries[number]
        if entry.size >= _SMALL:
            content = self._chain(entry.start, entry.size)
        else:
            if self._numbers is None:
                self._numbers = array("I", self._chain(self._small_start))
            content = _chained(self._small, entry.start, self._numbers, _SMALL_SECTOR, 0, entry.size)
        self._left -= len(content)
        if self._left < 0:
            raise BrokenDocument("damaged", "its streams lie over each other")
        return content

    def _chain(self, start: int, most: int | None = None) -> bytes:
        return _chained(self._content, start, self._table, self._sectors.size, self._sectors.size, most)


def _entry(directory: bytes, place: int) -> _Entry:
    name, length, kind, before, after, below, start, size = _ENTRY.unpack_from(directory, place)
    return _Entry(name[: max(0, length - 2)].decode("utf-16-le", "replace"), kind, before, after, below, start, size)


def stream(content: bytes, names: Collection[str]) -> bytes:
    """Return the first stream with one of the given names in a compound file; empty if there is none.

    Args:
        content: the file.
        names: names of streams.
    """
    if _open(content) is None:
        return b""
    opened = CompoundFile(content)
    return next((opened.read(number) for name, number in opened.streams() if name in names), b"")


def _chained(content: bytes, start: int, table: array[int], size: int, offset: int, most: int | None = None) -> bytes:
    """Return the concatenated sectors of a chain; at most as many as the table has, and no more bytes than `most`."""
    pieces: list[bytes] = []
    count = len(table) if most is None else min(len(table), -(-most // size))
    while start < len(table) and len(pieces) < count:
        pieces.append(content[offset + start * size : offset + (start + 1) * size])
        start = table[start]
    return b"".join(pieces)[:most]


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
