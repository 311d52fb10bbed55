"""Items of a listing that need a look, each once, whatever number of times the source lists them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.model import Item
from parquetry.planning.views import picked
from parquetry.tasks.documents.spooled import IN_MEMORY, SpooledRecords

Events = npt.NDArray[np.int64]
"""numbers of events, in their order"""
_DIGEST = 16
"""bytes of the digest of a path"""
_DROPPED = -1
"""place in the records of a path that is taken back"""


class ListedItems:
    """Items as a source lists them, a few in memory and the others in a file with 32 bytes in memory for each.

    An attempt to list that breaks off is followed by another one, which lists everything again.
    """

    def __init__(self) -> None:
        self._few: list[Item] = []
        self._file: SpooledRecords[Item] | None = None
        self._digests = bytearray()
        """digest of the path of each event: an item that was added or dropped"""
        self._places = array("q")
        """place of its record, `_DROPPED` if it was dropped"""
        self._attempts = array("q")
        """number of events before each attempt"""
        self._count = 0

    def begin(self) -> None:
        """Start another attempt."""
        self._attempts.append(len(self._places))

    def add(self, item: Item) -> None:
        """Add an item; the last one of a path counts, at the place of the first.

        Raises:
            OSError: the disk with temporary files is full.
        """
        self._note(item.path, self._count)
        self._count += 1
        if self._file is None:
            self._few.append(item)
            if len(self._few) >= IN_MEMORY:
                self._file = SpooledRecords("items")
                for each in self._few:
                    self._file.append(each)
                self._few = []
        else:
            self._file.append(item)

    def drop(self, path: str) -> None:
        """Take back the item of a path that this attempt added."""
        self._note(path, _DROPPED)

    def _note(self, path: str, place: int) -> None:
        self._digests += ids.digest(path, size=_DIGEST)
        self._places.append(place)

    def latest(self) -> Sequence[Item]:
        """Return the items of the last attempt."""
        return self._chosen(self._kept(self._attempt(len(self._attempts) - 1)))

    def all(self) -> Sequence[Item]:
        """Return the items that any attempt ended with."""
        kept = [self._kept(self._attempt(number)) for number in range(len(self._attempts))]
        return self._chosen(self._kept(np.concatenate(kept)))

    def _attempt(self, number: int) -> Events:
        ends = [*self._attempts[1:], len(self._places)]
        return np.arange(self._attempts[number], ends[number])

    def _kept(self, events: Events) -> Events:
        """Return the event that counts of each path, in the order of the first ones."""
        digests = np.frombuffer(self._digests, f"S{_DIGEST}")[events]
        places = np.frombuffer(self._places, np.int64)[events] if len(events) else events
        _, inverse, counts = np.unique(digests, return_inverse=True, return_counts=True)
        is_plain = (counts[inverse] == 1) & (places != _DROPPED)
        plain, others = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
        if not len(others):
            return events
        first: dict[bytes, int] = {}
        last: dict[bytes, int] = {}
        for at, digest, place in zip(others.tolist(), digests[others].tolist(), places[others].tolist(), strict=True):
            if place == _DROPPED:
                first.pop(digest, None)
            else:
                first.setdefault(digest, at)
                last[digest] = at
        began = np.concatenate([plain, np.array(list(first.values()), np.int64)])
        counted = np.concatenate([plain, np.array([last[digest] for digest in first], np.int64)])
        kept: Events = events[counted[np.argsort(began, kind="stable")]]
        return kept

    def _chosen(self, events: Events) -> Sequence[Item]:
        places = np.frombuffer(self._places, np.int64)[events] if len(events) else events
        if self._file is None:
            return picked(tuple(self._few), places.tolist())
        self._file.finish()
        if len(places) == len(self._file):
            return self._file
        return picked(self._file, places)
