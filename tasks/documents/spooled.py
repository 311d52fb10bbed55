"""Items and planned changes in an anonymous temporary file, so that memory holds only the few that are in work."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

from parquetry.tasks.anonymous_file import AnonymousFile, packed, unpacked

Record = TypeVar("Record")
IN_MEMORY = 2000
"""records from which they are written to a file"""
_BLOCK_BYTES = 1 << 18
"""bytes written or read at once"""


class SpooledRecords(Sequence[Record]):
    """Records in a file, in their order; each is read anew whenever it is asked for.

    Records are added by one thread; after `finish`, any thread may read them.

    Args:
        what: name of the records, for the file.
    """

    def __init__(self, what: str) -> None:
        self._file = AnonymousFile(what)
        self._ends = array("q", [0])
        """offset in bytes of the end of each record, after that of the file's beginning"""
        self._waiting = bytearray()

    def append(self, record: Record) -> None:
        """Add a record.

        Raises:
            OSError: the disk with temporary files is full.
        """
        content = packed(record)
        self._ends.append(self._ends[-1] + len(content))
        self._waiting += content
        if len(self._waiting) >= _BLOCK_BYTES:
            self.finish()

    def finish(self) -> None:
        """Write the records that wait to be written.

        Raises:
            OSError: the disk with temporary files is full.
        """
        if self._waiting:
            self._file.append(bytes(self._waiting))
            self._waiting = bytearray()

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        index = range(len(self))[place]
        start = self._ends[index]
        record: Record = unpacked(self._file.read(start, self._ends[index + 1] - start))
        return record

    def __iter__(self) -> Iterator[Record]:
        first = 0
        while first < len(self):
            start, last = self._ends[first], first + 1
            while last < len(self) and self._ends[last + 1] - start <= _BLOCK_BYTES:
                last += 1
            content = memoryview(self._file.read(start, self._ends[last] - start))
            for place in range(first, last):
                record: Record = unpacked(content[self._ends[place] - start : self._ends[place + 1] - start])
                yield record
            first = last


class GrowingRecords(Generic[Record]):
    """Records that are still being added: the first in memory, and all of them in a file from `IN_MEMORY` on.

    Args:
        what: name of the records, for the file.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._few: list[Record] = []
        self._many: SpooledRecords[Record] | None = None

    def append(self, record: Record) -> None:
        """Add a record.

        Raises:
            OSError: the disk with temporary files is full.
        """
        if self._many is not None:
            self._many.append(record)
            return
        self._few.append(record)
        if len(self._few) >= IN_MEMORY:
            self._many = SpooledRecords(self._what)
            for each in self._few:
                self._many.append(each)
            self._few = []

    def records(self) -> Sequence[Record]:
        """Return the records that have been added: a tuple, or a view of the file.

        Raises:
            OSError: the disk with temporary files is full.
        """
        if self._many is None:
            return tuple(self._few)
        self._many.finish()
        return self._many


def spooled(records: Iterable[Record], what: str) -> Sequence[Record]:
    """Return records as a sequence: a tuple if they are few, otherwise from a file.

    Args:
        records: consumed once.
        what: name of the records, for the file.

    Raises:
        OSError: the disk with temporary files is full.
    """
    spool: GrowingRecords[Record] = GrowingRecords(what)
    for record in records:
        spool.append(record)
    return spool.records()
