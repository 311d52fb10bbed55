"""Two searches side by side: where each result stands on the other side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parquetry.serving.web.results import Result


@dataclass(frozen=True, slots=True)
class ComparedResult:
    """A result of one side."""

    result: Result
    rank: int
    """1-based"""
    other: int | None
    """its rank on the other side; None if it is not there"""

    @property
    def change(self) -> str:
        """Its standing on the other side, in words."""
        if self.other is None:
            return "only here"
        if self.other == self.rank:
            return "same place"
        return f"place {self.other} on the other side"


@dataclass(frozen=True, slots=True)
class Compared:
    """Both sides."""

    left: tuple[ComparedResult, ...]
    right: tuple[ComparedResult, ...]
    shared: int
    """results that both have"""


def compared(left: Sequence[Result], right: Sequence[Result]) -> Compared:
    """Return two lists of results beside each other.

    Results are the same if they are the same chunk of the same document, by number: a chunk may have other words in
    another version.
    """
    places = [{(each.document_id, each.chunk_index): n for n, each in enumerate(side, 1)} for side in (left, right)]

    def side(results: Sequence[Result], others: dict[tuple[str, int], int]) -> tuple[ComparedResult, ...]:
        return tuple(
            ComparedResult(each, rank, others.get((each.document_id, each.chunk_index)))
            for rank, each in enumerate(results, 1)
        )

    return Compared(side(left, places[1]), side(right, places[0]), len(places[0].keys() & places[1].keys()))
