"""The compound files that XLS workbooks are: chains of sectors, which a reader follows until they end."""

from __future__ import annotations

import struct
from array import array

from knowledge.errors import BrokenDocument

_HEADER = struct.Struct("<30xH28xI4xII109I")
"""the power of the size of a sector, where the table of small sectors and the rest of the list of tables begin and how
many sectors that rest has; the first tables. [MS-CFB] 2.2"""
_SECTOR_SIZES = (9, 12)
_NO_END = "the chain of its sectors does not end"


def check_chains(content: bytes) -> None:
    """Refuse a compound file with a chain that comes back to itself: calamine would follow it until memory ends.

    Raises:
        BrokenDocument: `damaged`.
    """
    if len(content) < _HEADER.size:
        return
    power, small, more, _, *tables = _HEADER.unpack_from(content)
    if power not in _SECTOR_SIZES:
        return
    sectors = _Sectors(content, 1 << power)
    while more < len(sectors):
        *listed, more = sectors[more]
        tables.extend(listed)
        sectors.count(listed)
    table = sectors.joined(tables)
    _check(table)
    chain = []
    while small < len(table):
        chain.append(small)
        small = table[small]
    _check(sectors.joined(chain))


class _Sectors:
    """The sectors of a file as 32-bit numbers; a table cannot have more of them than the file."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content = content
        self._size = size
        self._left = len(self) * (size // 4)

    def __len__(self) -> int:
        return len(self._content) // self._size - 1

    def __getitem__(self, number: int) -> array[int]:
        start = (number + 1) * self._size
        return array("I", self._content[start : start + self._size])

    def count(self, listed: list[int]) -> None:
        """Refuse more entries than sectors could hold."""
        self._left -= len(listed)
        if self._left < 0:
            raise BrokenDocument("damaged", _NO_END)

    def joined(self, numbers: list[int]) -> array[int]:
        """The sectors of these numbers, one after the other; those that are not there are left out."""
        there = [number for number in numbers if number < len(self)]
        if len(there) > len(self):
            raise BrokenDocument("damaged", _NO_END)
        whole = array("I")
        for number in there:
            whole.extend(self[number])
        return whole


def _check(table: array[int]) -> None:
    """Follow every chain of a table once, each entry of which is the number of the next."""
    walk = array("I", bytes(4 * len(table)))
    for start in range(len(table)):
        at = start
        while at < len(table) and not walk[at]:
            walk[at] = start + 1
            at = table[at]
        if at < len(table) and walk[at] == start + 1:
            raise BrokenDocument("damaged", _NO_END)
