"""Telling documents that need nothing apart while their source is listed, for about fifty bytes of memory each."""

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
"""where their digests end in a record"""
_UNSEEN, _SAME, _OTHER = 0, 1, 2


class Settled:
    """The published documents of one source that need nothing as long as the source lists them as it did.

    A corpus may hold a million documents of which ten changed: only those ten are worth a row and an item in memory.
    Two paths are taken for one with a probability of 2^-128; a change is overlooked with one of 2^-64.
    """

    def __init__(self) -> None:
        self._added = bytearray()
        self._told: dict[Access, str] = {}

    def add(self, row: DocumentRow) -> None:
        """Take the row of a document that is stored as the present settings want it; all before the listing begins."""
        self._added += ids.digest(row.path, size=_PATH) + self._token(row.uri, row.etag, row.access)
        self._added += uuid.UUID(row.document_id).bytes

    def __len__(self) -> int:
        return len(self._added) // _RECORD.itemsize

    @cached_property
    def _order(self) -> tuple[memoryview, npt.NDArray[np.void]]:
        """The first eight bytes of the paths' digests, in order, and the records in that order."""
        added = bytes(self._added)
        starts = np.ndarray((len(self),), "<u8", added, strides=(_RECORD.itemsize,))
        order = np.argsort(starts)
        return starts[order].astype(np.uint64).data, np.frombuffer(added, _RECORD)[order]

    def find(self, path: str) -> list[int]:
        """Where the document of a path is among these; in several places only in a corpus that is damaged."""
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
        """Whether nothing by which a change shows differs."""
        record: bytes = self._order[1][place].tobytes()
        return record[_PATH:_TOKEN] == self._token(item.uri, item.etag, item.access)

    def identity(self, place: int) -> str:
        """The id of a document."""
        return str(uuid.UUID(bytes=self._order[1][place]["identity"].tobytes()))

    def _token(self, uri: str, etag: str, access: Access) -> bytes:
        if access not in self._told:
            self._told[access] = repr(access)
        return ids.digest(uri, etag, self._told[access], size=_TOKEN - _PATH)


class Sighting:
    """What the listing of a source met of its settled documents; each try to list begins anew."""

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self._before = bytearray(len(settled))
        """what earlier tries met"""
        self._marks = bytearray(len(settled))

    def begin(self) -> None:
        """Begin another try to list."""
        self._before, self._marks = self._of_all_tries(), bytearray(len(self._settled))

    def give_up(self) -> None:
        """Take what all tries together met: no further one is made."""
        self._marks = self._of_all_tries()

    def meets(self, item: Item) -> bool:
        """Whether a listed document needs nothing. The last time that it is listed counts."""
        places = self._settled.find(item.path)
        same = len(places) == 1 and self._settled.is_as_listed(places[0], item)
        for place in places:
            self._marks[place] = _SAME if same else _OTHER
        return same

    @property
    def count(self) -> int:
        """Documents that were met as they were."""
        return self._marks.count(_SAME)

    def unsettled(self, *, complete: bool) -> Iterator[str]:
        """Ids of the documents with which something may have to be done.

        Args:
            complete: whether the listing is: then what it did not meet is gone.
        """
        for place, mark in enumerate(self._marks):
            if mark == _OTHER or (complete and mark == _UNSEEN):
                yield self._settled.identity(place)

    def misses(self, path: str) -> bool:
        """Whether a settled document was not met."""
        return any(self._marks[place] == _UNSEEN for place in self._settled.find(path))

    def _of_all_tries(self) -> bytearray:
        return bytearray(map(max, self._before, self._marks))
