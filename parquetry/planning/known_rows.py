"""The published documents of a source, found by path and by content, while their rows may be in a file."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from parquetry import ids
from parquetry.model import DocumentRow, Item

_OTHER, _PUBLISHED, _TAKEN = 0, 1, 2


class KnownRows:
    """The current rows of a source, of which memory holds some 40 bytes each.

    A row is read whenever it is asked for. Paths with the same hash are told apart by their rows.

    Args:
        rows: rows of the source and of others of its namespace; read once at the beginning, and then by place.
        elsewhere: further rows, in memory, used for their content alone.
        is_ours: True for a row of the source whose document the listing may show.
    """

    def __init__(
        self, rows: Sequence[DocumentRow], elsewhere: Iterable[DocumentRow], is_ours: Callable[[DocumentRow], bool]
    ) -> None:
        self._rows = rows
        self._marks = bytearray(len(rows))
        """for each row, whether its document is published at its path, and whether that path was taken from it"""
        self._paths, self._contents = _Places(), _Places()
        sizes = array("q")
        self._elsewhere: dict[str, list[DocumentRow]] = defaultdict(list)
        for place, row in enumerate(rows):
            if is_ours(row):
                self._marks[place] = _PUBLISHED
                self._paths.add(ids.memory_hash(row.path), place)
            if row.status == "indexed":
                sizes.append(row.size)
                self._contents.add(ids.memory_hash(row.content_hash), place)
        for row in elsewhere:
            if row.status == "indexed":
                sizes.append(row.size)
                self._elsewhere[row.content_hash].append(row)
        self.count = len(self._paths)
        """documents of the source"""
        self._paths.sort()
        self._contents.sort()
        self._sizes = _each_once(sizes)

    def at(self, path: str) -> DocumentRow | None:
        """Return the row of the source's document at a path."""
        return next((row for _, row in self._at(path)), None)

    def _at(self, path: str) -> Iterator[tuple[int, DocumentRow]]:
        for place in self._paths.of(ids.memory_hash(path)):
            row = self._rows[place]
            if row.path == path:
                yield place, row

    def has_size(self, size: int) -> bool:
        """True if an indexed document, of whatever source, has a size in bytes."""
        place = bisect_left(self._sizes, size)
        return place < len(self._sizes) and self._sizes[place] == size

    def with_content(self, content_hash: str, size: int) -> list[DocumentRow]:
        """Return the rows of the indexed documents, of whatever source, with a content."""
        rows = (self._rows[place] for place in self._contents.of(ids.memory_hash(content_hash)))
        found = (*rows, *self._elsewhere.get(content_hash, ()))
        return [row for row in found if row.content_hash == content_hash and row.size == size]

    def mark_listed(self, items: Iterable[Item]) -> None:
        """Mark the documents that were listed; the others are gone if the listing shows removals."""
        for item in items if self.count else ():
            places = self._paths.of(ids.memory_hash(item.path))
            if len(places) > 1:
                places = [place for place, _ in self._at(item.path)]
            for place in places:
                self._marks[place] = _TAKEN

    def take(self, path: str) -> bool:
        """Mark a document that was not listed as moved; False if it is not one, or was marked before."""
        for place, _ in self._at(path):
            if self._marks[place] == _PUBLISHED:
                self._marks[place] = _TAKEN
                return True
        return False

    def is_unlisted(self, path: str) -> bool:
        """True if the document at a path is neither listed nor moved."""
        return any(self._marks[place] == _PUBLISHED for place, _ in self._at(path))

    @property
    def unlisted_count(self) -> int:
        """Number of documents that are neither listed nor moved."""
        return self._marks.count(_PUBLISHED)

    def unlisted(self) -> Iterator[DocumentRow]:
        """Yield the rows of the documents that are neither listed nor moved, in their order."""
        for place, mark in enumerate(self._marks):
            if mark == _PUBLISHED:
                yield self._rows[place]


class _Places:
    """Places of rows by a hash of 64 bits, 16 bytes each."""

    def __init__(self) -> None:
        self._hashes, self._places = array("q"), array("q")

    def add(self, hashed: int, place: int) -> None:
        self._hashes.append(hashed)
        self._places.append(place)

    def __len__(self) -> int:
        return len(self._places)

    def sort(self) -> None:
        """Sort the places, which have all been added, so that they can be found."""
        import numpy as np

        if self._places:
            columns = np.frombuffer(self._hashes, np.int64), np.frombuffer(self._places, np.int64)
            order = np.argsort(columns[0], kind="stable")
            for column in columns:
                column[:] = column[order]

    def of(self, sought: int) -> list[int]:
        """Return the places with a hash, in the order in which they were added."""
        found = []
        number = bisect_left(self._hashes, sought)
        while number < len(self._hashes) and self._hashes[number] == sought:
            found.append(self._places[number])
            number += 1
        return found


def _each_once(numbers: array[int]) -> array[int]:
    """Return numbers in ascending order, each once."""
    import numpy as np

    return array("q", np.unique(np.frombuffer(numbers, np.int64)).tobytes()) if numbers else numbers
