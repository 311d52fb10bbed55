"""Division of work into batches of similar size."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from parquetry.planning.diff import Change
from parquetry.planning.views import picked

_ID_BYTES = 36
"""bytes of a document's id by which documents of one size are ordered: all of it"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents processed by one task."""

    number: int
    """0-based within the run"""
    changes: Sequence[Change]
    """changes with effort `extract` or `rechunk`, in namespaces with the same embedder; may be in a file, from which
    they are read again each time"""
    host: str = ""
    """service that the documents are read from; empty for this machine"""

    @property
    def size(self) -> int:
        """Size at the source, in bytes."""
        return sum(_size(change) for change in self.changes)


@dataclass(slots=True)
class _Group:
    """Documents of one embedder and host, in 52 bytes of memory each."""

    places: array[int] = field(default_factory=lambda: array("q"))
    """places in the changes of the plan"""
    sizes: array[int] = field(default_factory=lambda: array("q"))
    """bytes at the source"""
    ids: bytearray = field(default_factory=bytearray)

    def add(self, place: int, change: Change) -> None:
        self.places.append(place)
        self.sizes.append(_size(change))
        self.ids += change.document_id.encode()[:_ID_BYTES].ljust(_ID_BYTES, b"\0")

    def filled(self, batch_bytes: int, batch_documents: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Yield batches: the size of the first document, and the places of all; the largest documents come first."""
        sizes, ids = np.frombuffer(self.sizes, np.int64), np.frombuffer(self.ids, f"S{_ID_BYTES}")
        order = np.lexsort((ids, -sizes))
        places, sizes = np.frombuffer(self.places, np.int64)[order], sizes[order]
        first = filled = 0
        for last, size in enumerate(sizes.tolist()):
            if last > first and (filled + size > batch_bytes or last - first >= batch_documents):
                yield int(sizes[first]), places[first:last]
                first, filled = last, 0
            filled += size
        yield int(sizes[first]), places[first:]


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
        changes: planned changes; those that need no work are left out. Of a sequence other than a tuple, a batch looks
            its changes up when they are asked for.
        embedder_of: namespace -> its embedder; all documents of a batch have the same embedder.
        batch_bytes: source bytes that fill a batch.
        batch_documents: documents that fill a batch.
        host_of: change -> service that it is read from; all documents of a batch share it, so that a slow service
            delays only its own documents.
    """
    source = changes if isinstance(changes, Sequence) else tuple(changes)
    groups: dict[tuple[str, str], _Group] = defaultdict(_Group)
    for place, change in enumerate(source):
        if change.effort in ("extract", "rechunk"):
            groups[embedder_of(change.namespace), host_of(change)].add(place, change)
    batches = [
        (size, host, places)
        for (_, host), group in sorted(groups.items(), key=lambda each: each[0])
        for size, places in group.filled(batch_bytes, batch_documents)
    ]
    batches.sort(key=lambda each: -each[0])
    return tuple(Batch(number, picked(source, places), host) for number, (_, host, places) in enumerate(batches))


def batches_with(
    batches: Iterable[Batch], documents: Collection[tuple[str, str]], first: int, *, in_turn: bool = False
) -> list[Batch]:
    """Return the batches with some of their documents alone.

    Args:
        batches: batches of a run.
        documents: namespaces and document ids.
        first: number of the first batch.
        in_turn: True to forget the hosts, for batches that are processed one after the other.
    """
    kept = (
        (batch, changes)
        for batch in batches
        if (changes := tuple(each for each in batch.changes if (each.namespace, each.document_id) in documents))
    )
    return [Batch(first + place, changes, "" if in_turn else batch.host) for place, (batch, changes) in enumerate(kept)]


def _size(change: Change) -> int:
    return change.item.size if change.item else 0
