"""Division of work into batches of similar size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from parquetry.planning.diff import Change


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents processed by one task."""

    number: int
    """0-based within the run"""
    changes: tuple[Change, ...]
    """changes with effort `extract` or `rechunk`, in namespaces with the same embedder"""
    host: str = ""
    """service that the documents are read from; empty for this machine"""

    @property
    def size(self) -> int:
        """Size at the source, in bytes."""
        return sum(_size(change) for change in self.changes)


def into_batches(
    changes: Iterable[Change],
    embedder_of: Callable[[str], str],
    batch_bytes: int,
    batch_documents: int,
    host_of: Callable[[Change], str] = lambda _: "",
) -> tuple[Batch, ...]:
    """Group the changes that need work into batches, the largest documents first.

    This order keeps all workers busy to the end. A document larger than `batch_bytes` gets a batch of its own.

    Args:
        changes: planned changes; those that need no work are left out.
        embedder_of: namespace -> its embedder; all documents of a batch have the same embedder.
        batch_bytes: source bytes that fill a batch.
        batch_documents: documents that fill a batch.
        host_of: change -> service that it is read from; all documents of a batch share it, so that a slow service
            delays only its own documents.
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
    """Divide the documents of one embedder and host into batches, the largest first."""
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
