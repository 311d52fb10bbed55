"""Passages: hits with the surrounding text, without repetition. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from parquetry.serving.search.tables import Span


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """Position of a chunk in its document."""

    document_id: str
    chunk_index: int
    """0-based"""
    start: int
    """first character, 0-based"""
    end: int
    """one past the last character"""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive chunks of one document as a single span."""

    document_id: str
    start: int
    """first character, 0-based"""
    end: int
    """one past the last character"""
    hits: tuple[int, ...]
    """0-based ranks of the hits inside, in text order"""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch and its text."""

    stretch: Stretch
    text: str
    """exactly `document_text[start:end]`"""
    marks: tuple[Span, ...]
    """character span of each hit in the document's text, in the order of `stretch.hits`"""

    def as_json(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return one item of `passages` in `parquetry search --context N --json`.

        Args:
            rows: rows of all hits, best first.
        """
        first = rows[self.stretch.hits[0]]
        return {
            "document_id": self.stretch.document_id,
            "uri": first["uri"],
            "filename": first["filename"],
            "title": first["title"],
            "span": [self.stretch.start, self.stretch.end],
            "text": self.text,
            "hits": [
                {"result": rank, "chunk_id": rows[rank]["chunk_id"], "span": list(mark)}
                for rank, mark in zip(self.stretch.hits, self.marks, strict=True)
            ],
        }


def merge(hits: Sequence[ChunkPosition], chunks: Sequence[ChunkPosition], context: int) -> list[Stretch]:
    """Extend every hit by its neighbours, and merge stretches that touch or overlap.

    Consecutive chunks touch: only white space separates them.

    Args:
        hits: positions of the hits, best first.
        chunks: chunks of the hits' documents, at least those within `context` of each hit.
        context: number of chunks before and after each hit.

    Returns:
        Disjoint stretches in the order of their best hits; each hit is in exactly one.
    """
    ranks = {(hit.document_id, hit.chunk_index): rank for rank, hit in enumerate(hits)}
    found: dict[str, list[int]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.chunk_index):
        found[hit.document_id].append(hit.chunk_index)
    kept = sorted(
        {each for each in chunks if _distance(found[each.document_id], each.chunk_index) <= context},
        key=lambda each: (each.document_id, each.chunk_index),
    )
    stretches: list[Stretch] = []
    previous = None
    for chunk in kept:
        rank = ranks.get((chunk.document_id, chunk.chunk_index))
        inside = () if rank is None else (rank,)
        joins = previous is not None and previous.document_id == chunk.document_id
        if (
            joins
            and previous is not None
            and (chunk.chunk_index == previous.chunk_index + 1 or chunk.start <= stretches[-1].end)
        ):
            last = stretches[-1]
            stretches[-1] = Stretch(last.document_id, last.start, max(last.end, chunk.end), (*last.hits, *inside))
        else:
            stretches.append(Stretch(chunk.document_id, chunk.start, chunk.end, inside))
        previous = chunk
    return sorted(stretches, key=lambda each: min(each.hits))


def _distance(sorted_indexes: Sequence[int], index: int) -> float:
    """Return the distance to the nearest index; infinity if there is none."""
    right = bisect_left(sorted_indexes, index)
    return min((abs(each - index) for each in sorted_indexes[max(right - 1, 0) : right + 1]), default=inf)
