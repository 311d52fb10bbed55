"""Writes compound files, the container of older office programs and of Outlook."""

from __future__ import annotations

import struct
from collections.abc import Mapping

FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SECTOR, SMALL_SECTOR, SMALL = 512, 64, 4096

Tree = Mapping[str, "bytes | Tree"]


class _Chains:
    """Streams divided into sectors, and the table of the sector that follows each."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.content = bytearray()
        self.table: list[int] = []

    def add(self, content: bytes) -> int:
        """Add a stream; return its first sector."""
        if not content:
            return END
        first = len(self.table)
        count = -(-len(content) // self._size)
        self.table += [*range(first + 1, first + count), END]
        self.content += content.ljust(count * self._size, b"\0")
        return first


def write_compound(tree: Tree) -> bytes:
    """Return a compound file of version 3 with storages (mappings) and streams (bytes)."""
    chains, small = _Chains(SECTOR), _Chains(SMALL_SECTOR)
    entries: list[list] = [["Root Entry", 5, FREE, FREE, FREE, END, 0]]

    def add(children: Tree, parent: int) -> None:
        before = None
        for name, content in children.items():
            number = len(entries)
            entries.append([name, 1, FREE, FREE, FREE, 0, 0])
            if before is None:
                entries[parent][4] = number
            else:
                entries[before][3] = number
            before = number
            if isinstance(content, bytes):
                where = chains if len(content) >= SMALL else small
                entries[number][1] = 2
                entries[number][5:] = [where.add(content), len(content)]
            else:
                add(content, number)

    add(tree, 0)
    entries[0][5:] = [chains.add(bytes(small.content)), len(small.content)]
    numbers = struct.pack(f"<{len(small.table)}I", *small.table)
    small_table = chains.add(numbers + b"\xff" * (-len(numbers) % SECTOR))
    directory = b"".join(map(_entry, entries))
    first = chains.add(directory + bytes(-len(directory) % SECTOR))
    sectors = len(chains.table)
    tables = -(-sectors // (SECTOR // 4 - 1))
    listed = [*chains.table, *[TABLE] * tables]
    listed += [FREE] * (tables * SECTOR // 4 - len(listed))
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII109I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6,
        0, tables, first, 0, SMALL, small_table, -(-len(numbers) // SECTOR), END, 0,
        *range(sectors, sectors + tables), *[FREE] * (109 - tables),
    )  # fmt: skip
    return header + bytes(chains.content) + struct.pack(f"<{len(listed)}I", *listed)


def _entry(entry: list) -> bytes:
    name, kind, before, after, below, start, size = entry
    told = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBBIII36xII4x", told, len(told), kind, 1, before, after, below, start, size)
