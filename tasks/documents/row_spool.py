"""Rows that wait to be published, most of them in an anonymous temporary file, so that memory holds only a few."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from parquetry.model import DocumentRow
from parquetry.tasks.anonymous_file import AnonymousFile, packed, unpacked

IN_MEMORY = 2000
"""rows from which they are written to the file"""


class RowSpool(Collection[DocumentRow]):
    """The rows of a run, in the order in which they were added. Used from one thread.

    The file has no name, and disappears when its process ends in any way.
    """

    def __init__(self) -> None:
        self._latest: list[DocumentRow] = []
        self._file: AnonymousFile | None = None
        self._places: list[tuple[int, int]] = []
        """offset and size in bytes of each part of the file"""
        self._count = 0

    def extend(self, rows: Iterable[DocumentRow]) -> None:
        """Add rows.

        Raises:
            OSError: the disk with temporary files is full.
        """
        for row in rows:
            self._latest.append(row)
            self._count += 1
            if len(self._latest) >= IN_MEMORY:
                self._write()

    def _write(self) -> None:
        content = packed(self._latest)
        if self._file is None:
            self._file = AnonymousFile("rows")
        self._places.append((self._file.append(content), len(content)))
        self._latest = []

    def __iter__(self) -> Iterator[DocumentRow]:
        for offset, size in list(self._places):
            yield from self._part(offset, size)
        yield from list(self._latest)

    def _part(self, offset: int, size: int) -> list[DocumentRow]:
        if self._file is None:
            raise ValueError("the spool of rows is closed")
        rows: list[DocumentRow] = unpacked(self._file.read(offset, size))
        return rows

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def close(self) -> None:
        """Delete the file; the rows in it are gone."""
        if self._file is not None:
            self._file.close()
            self._file = None
