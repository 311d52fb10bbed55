"""Dividing work into batches of even size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from parquetry.planning.diff import Change


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents that one task processes."""

    number: int
    """0-based within the run"""
    changes: tuple[Change, ...]
    """each with effort `extract` or `rechunk`; their namespaces have one embedder"""
    host: str = ""
    """service that they are read from; empty for this machine"""

    @property
    def size(self) -> int:
        """Bytes at the source."""
        return sum(_size(change) for change in self.changes)


def into_batches(
    changes: Iterable[Change],
    embedder_of: Callable[[str], str],
    batch_bytes: int,
    batch_documents: int,
    host_of: Callable[[Change], str] = lambda _: "",
) -> tuple[Batch, ...]:
    """Group the changes that need work, the largest documents first.

    Starting with the largest keeps all workers busy to the end; a document larger than `batch_bytes` has a batch to
    itself.

    Args:
        changes: any changes; those that need no work are left out.
        embedder_of: namespace -> what its documents are embedded by; a batch holds documents of one embedder.
        batch_bytes: source bytes after which a batch is full.
        batch_documents: documents after which a batch is full.
        host_of: change -> service that it is read from; a batch holds documents of one, so that a slow one holds up
            nobody else's.
    """
    groups: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for change in changes:
        if change.effort in ("extract", "rechunk"):
            groups[embedder_of(change.namespace), host_of(change)].append(change)
    batches = [
        (host, batch)
        for (_, host), work in sorted(groups.items())
        for batch in _filled(work, batch_bytes, batch_documents)
    ]
    batches.sort(key=lambda each: -_size(each[1][0]))
    return tuple(Batch(number, batch, host) for number, (host, batch) in enumerate(batches))


def _filled(work: list[Change], batch_bytes: int, batch_documents: int) -> list[tuple[Change, ...]]:
    """Documents of one embedder in batches, the largest first."""
    batches: list[tuple[Change, ...]] = []
    batch: list[Change] = []
    filled = 0
    for change in sorted(work, key=lambda change: (-_size(change), change.document_id)):
        if batch and (filled + _size(change) > batch_bytes or len(batch) >= batch_documents):
            batches.append(tuple(batch))
            batch, filled = [], 0
        batch.append(change)
        filled += _size(change)
    if batch:
        batches.append(tuple(batch))
    return batches


def _size(change: Change) -> int:
    return change.item.size if change.item else 0
