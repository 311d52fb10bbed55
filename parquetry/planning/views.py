"""Sequences that hold no records of their own, of records that may be in a file."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TypeVar, overload

Record = TypeVar("Record")


def picked(records: Sequence[Record], places: Iterable[int]) -> Sequence[Record]:
    """Return the records at some places: a tuple of records in memory, otherwise a view.

    Args:
        records: records to choose from.
        places: 0-based places, in the order wanted.
    """
    if isinstance(records, (list, tuple)):
        return tuple(records[place] for place in places)
    return _Picked(records, array("q", places))


def joined(parts: Iterable[Sequence[Record]]) -> Sequence[Record]:
    """Return the records of several sequences one after the other: a tuple if all are in memory, otherwise a view."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    if all(isinstance(part, tuple) for part in filled):
        return tuple(chain.from_iterable(filled))
    return _Joined(filled)


class View(Sequence[Record]):
    """A sequence that looks a record up whenever it is asked for."""

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        if isinstance(place, slice):
            return tuple(self._at(each) for each in range(*place.indices(len(self))))
        return self._at(range(len(self))[place])

    def _at(self, place: int) -> Record:
        raise NotImplementedError


class _Picked(View[Record]):
    def __init__(self, records: Sequence[Record], places: array[int]) -> None:
        self._records, self._places = records, places

    def __len__(self) -> int:
        return len(self._places)

    def _at(self, place: int) -> Record:
        return self._records[self._places[place]]


class _Joined(View[Record]):
    def __init__(self, parts: Sequence[Sequence[Record]]) -> None:
        self._parts = parts
        self._starts = list(accumulate(map(len, parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(self._parts)

    def _at(self, place: int) -> Record:
        part = bisect_right(self._starts, place) - 1
        return self._parts[part][place - self._starts[part]]
