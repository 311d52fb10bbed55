"""Dividing work into batches of even size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from knowledge.changes import Change


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents that one task processes."""

    number: int
    """0-based within the run"""
    changes: tuple[Change, ...]
    """each with effort `extract` or `rechunk`"""

    @property
    def size(self) -> int:
        """Bytes at the source."""
        return sum(_size(change) for change in self.changes)


def into_batches(changes: Iterable[Change], batch_bytes: int, batch_documents: int) -> tuple[Batch, ...]:
    """Group the changes that need work, the largest documents first.

    Starting with the largest keeps all workers busy to the end; a document larger than `batch_bytes` has a batch to
    itself.

    Args:
        changes: any changes; those that need no work are left out.
        batch_bytes: source bytes after which a batch is full.
        batch_documents: documents after which a batch is full.
    """
    work = [change for change in changes if change.effort in ("extract", "rechunk")]
    work.sort(key=lambda change: (-_size(change), change.document_id))
    batches: list[tuple[Change, ...]] = []
    batch: list[Change] = []
    filled = 0
    for change in work:
        if batch and (filled + _size(change) > batch_bytes or len(batch) >= batch_documents):
            batches.append(tuple(batch))
            batch, filled = [], 0
        batch.append(change)
        filled += _size(change)
    if batch:
        batches.append(tuple(batch))
    return tuple(Batch(number, members) for number, members in enumerate(batches))


def _size(change: Change) -> int:
    return change.item.size if change.item else 0
