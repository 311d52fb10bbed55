"""Detection of unchanged documents during a listing, in about 50 bytes of memory per document."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.model import Access, DocumentRow, Item

_RECORD = np.dtype([("path", "V16"), ("token", "V8"), ("identity", "V16")])
_PATH, _TOKEN = 16, 24
"""ends of their digests in a record, in bytes"""
_UNSEEN, _SAME, _OTHER = 0, 1, 2


class UnchangedIndex:
    """Published documents of one source that need nothing while the listing matches them.

    A corpus may hold a million documents of which ten changed: only those ten get a row and an item in memory. The
    probability that two paths collide is 2^-128, and that a change is missed 2^-64.
    """

    def __init__(self) -> None:
        self._added = bytearray()
        self._told: dict[Access, str] = {}

    def add(self, row: DocumentRow) -> None:
        """Add the row of a document that is stored as the present settings require; call it only before the listing."""
        self._added += ids.digest(row.path, size=_PATH) + self._token(row.uri, row.etag, row.access)
        self._added += uuid.UUID(row.document_id).bytes

    def __len__(self) -> int:
        return len(self._added) // _RECORD.itemsize

    @cached_property
    def _order(self) -> tuple[memoryview, npt.NDArray[np.void]]:
        """First eight bytes of the paths' digests, sorted, and the records in that order."""
        added = bytes(self._added)
        starts = np.ndarray((len(self),), "<u8", added, strides=(_RECORD.itemsize,))
        order = np.argsort(starts)
        return starts[order].astype(np.uint64).data, np.frombuffer(added, _RECORD)[order]

    def find(self, path: str) -> list[int]:
        """Return the positions of a path's document; more than one only in a damaged corpus."""
        digest = ids.digest(path, size=_PATH)
        start = int.from_bytes(digest[:8], "little")
        starts, records = self._order
        found = []
        place = bisect_left(starts, start)
        while place < len(starts) and starts[place] == start:
            if records[place].tobytes()[:_PATH] == digest:
                found.append(place)
            place += 1
        return found

    def is_as_listed(self, place: int, item: Item) -> bool:
        """Return True if uri, change token and access of the item match the record."""
        record: bytes = self._order[1][place].tobytes()
        return record[_PATH:_TOKEN] == self._token(item.uri, item.etag, item.access)

    def identity(self, place: int) -> str:
        """Return the id of a document."""
        return str(uuid.UUID(bytes=self._order[1][place]["identity"].tobytes()))

    def _token(self, uri: str, etag: str, access: Access) -> bytes:
        if access not in self._told:
            self._told[access] = repr(access)
        return ids.digest(uri, etag, self._told[access], size=_TOKEN - _PATH)


class ScanPass:
    """Scan pass over a source: marks its unchanged documents as they are listed; each attempt to list starts afresh."""

    def __init__(self, unchanged: UnchangedIndex) -> None:
        self._settled = unchanged
        self._before = bytearray(len(unchanged))
        """marks of earlier attempts"""
        self._marks = bytearray(len(unchanged))
        self.changed_back = False
        """True if the document met last needs nothing, although this attempt listed it otherwise before"""

    def begin(self) -> None:
        """Start another attempt to list."""
        self._before, self._marks = self._of_all_tries(), bytearray(len(self._settled))

    def give_up(self) -> None:
        """Combine the marks of all attempts; no further attempt follows."""
        self._marks = self._of_all_tries()

    def meets(self, item: Item) -> bool:
        """Return True if a listed document needs nothing. If it is listed several times, the last one counts."""
        places = self._settled.find(item.path)
        same = len(places) == 1 and self._settled.is_as_listed(places[0], item)
        self.changed_back = same and self._marks[places[0]] == _OTHER
        for place in places:
            self._marks[place] = _SAME if same else _OTHER
        return same

    @property
    def count(self) -> int:
        """Number of documents listed unchanged."""
        return self._marks.count(_SAME)

    def needing_work(self, *, complete: bool) -> Iterator[str]:
        """Yield the ids of documents that may need work.

        Args:
            complete: True if the listing is complete: documents that were not listed are then gone.
        """
        for place, mark in enumerate(self._marks):
            if mark == _OTHER or (complete and mark == _UNSEEN):
                yield self._settled.identity(place)

    def misses(self, path: str) -> bool:
        """Return True if an unchanged document was not listed."""
        return any(self._marks[place] == _UNSEEN for place in self._settled.find(path))

    def _of_all_tries(self) -> bytearray:
        return bytearray(map(max, self._before, self._marks))
