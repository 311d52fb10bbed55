"""Detection of unchanged documents during a listing, in 17 bytes of memory per document."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from parquetry import ids
from parquetry.model import Access, DocumentRow, Item
from parquetry.planning.outline import DocumentOutline

_PARTS = 64
"""parts that are sorted one by one, so that sorting takes little memory"""
_SHIFT = 58
"""bits of a path's hash below those that choose its part"""
_UNSEEN, _SAME, _OTHER = 0, 1, 2


class UnchangedIndex:
    """Published documents of one source that need nothing while the listing matches them.

    A corpus may hold ten million documents of which ten changed: only those ten get a row and an item in memory.
    Documents whose paths have the same hash are all looked at; the probability that a change is missed is about 2^-64.
    """

    def __init__(self) -> None:
        self._paths = [array("q") for _ in range(_PARTS)]
        """hashes of the paths of each part"""
        self._states = [array("q") for _ in range(_PARTS)]
        """for each of these documents, the hash of everything else that a listing says about it"""
        self._offsets: list[int] = []
        """number of documents before each part, once they are sorted"""
        self._told: dict[Access, str] = {}

    def add(self, row: DocumentRow | DocumentOutline) -> None:
        """Add a document that is stored as the present settings require; call it only before the listing."""
        path = ids.memory_hash(row.path)
        part = (path >> _SHIFT) % _PARTS
        self._paths[part].append(path)
        self._states[part].append(self._state(row.uri, row.etag, row.access))

    def __len__(self) -> int:
        return sum(map(len, self._paths))

    def sort(self) -> None:
        """Sort the documents, which have all been added, so that they can be found."""
        self._offsets = []
        before = 0
        for paths, states in zip(self._paths, self._states, strict=True):
            self._offsets.append(before)
            before += len(paths)
            if paths:
                columns = np.frombuffer(paths, np.int64), np.frombuffer(states, np.int64)
                order = np.argsort(columns[0])
                for column in columns:
                    column[:] = column[order]

    def find(self, path: str) -> list[int]:
        """Return the positions of a path's document; more than one for paths with the same hash, or in damage."""
        sought = ids.memory_hash(path)
        part = (sought >> _SHIFT) % _PARTS
        paths = self._paths[part]
        place = bisect_left(paths, sought)
        found = []
        while place < len(paths) and paths[place] == sought:
            found.append(self._offsets[part] + place)
            place += 1
        return found

    def is_as_listed(self, position: int, item: Item) -> bool:
        """Return True if uri, change token and access of the item match those of a document with its path."""
        part = (ids.memory_hash(item.path) >> _SHIFT) % _PARTS
        state = self._states[part][position - self._offsets[part]]
        return state == self._state(item.uri, item.etag, item.access)

    def hashes(self) -> Iterator[int]:
        """Yield the hashes of all paths, by position."""
        for paths in self._paths:
            yield from paths

    def _state(self, uri: str, etag: str, access: Access) -> int:
        if access not in self._told:
            self._told[access] = repr(access)
        return ids.memory_hash(uri, etag, self._told[access])


class ScanPass:
    """Scan pass over a source: marks its unchanged documents as they are listed; each attempt to list starts afresh.

    Args:
        unchanged: published documents, to which none is added any more.
    """

    def __init__(self, unchanged: UnchangedIndex) -> None:
        unchanged.sort()
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

    def needing_work(self, *, complete: bool) -> frozenset[int]:
        """Return the hashes of the paths of documents that may need work.

        Args:
            complete: True if the listing is complete: documents that were not listed are then gone.
        """
        wanted = (_UNSEEN, _OTHER) if complete else (_OTHER,)
        if not any(mark in self._marks for mark in wanted):
            return frozenset()
        hashes = zip(self._marks, self._settled.hashes(), strict=True)
        return frozenset(path for mark, path in hashes if mark in wanted)

    def misses(self, path: str) -> bool:
        """Return True if an unchanged document was not listed."""
        return any(self._marks[place] == _UNSEEN for place in self._settled.find(path))

    def _of_all_tries(self) -> bytearray:
        tries = np.frombuffer(self._before, np.uint8), np.frombuffer(self._marks, np.uint8)
        return bytearray(np.maximum(*tries).tobytes())
