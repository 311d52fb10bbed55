"""The published documents of one source, in 17 bytes each, to find what a dump changes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from parquetry.model import DocumentRow
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Snapshot


class PublishedDocuments:
    """The current documents of a source with the hashes of their content.

    Args:
        snapshot: the version to read.
        namespace: namespace of the source.
        source: name of the source.
    """

    def __init__(self, snapshot: Snapshot, namespace: str, source: str) -> None:
        self._rows = CurrentRows(snapshot, [namespace])
        self._source = source
        keys, hashes = array("Q"), array("Q")
        for row in self._mine():
            keys.append(_beginning(row.document_id.replace("-", "")))
            hashes.append(_beginning(_state(row)))
        order = np.argsort(np.frombuffer(keys, np.uint64), kind="stable")
        self._keys = np.frombuffer(keys, np.uint64)[order]
        self._hashes = np.frombuffer(hashes, np.uint64)[order]
        self._seen = np.zeros(len(order), np.bool_)

    def __len__(self) -> int:
        return len(self._keys)

    def is_same(self, document_id: str, state: str) -> bool | None:
        """True if a document is published in this state, False if in another; None if it is not published."""
        key = np.uint64(_beginning(document_id.replace("-", "")))
        place = int(np.searchsorted(self._keys, key))
        if place == len(self._keys) or self._keys[place] != key:
            return None
        self._seen[place] = True
        return bool(self._hashes[place] == np.uint64(_beginning(state)))

    @property
    def unseen(self) -> int:
        """Number of documents that were not asked for."""
        return int((~self._seen).sum())

    def unseen_rows(self) -> Iterator[DocumentRow]:
        """Yield the rows of documents that were not asked for."""
        gone = {int(key) for key in self._keys[~self._seen]}
        return (row for row in self._mine() if _beginning(row.document_id.replace("-", "")) in gone)

    def rows(self, document_ids: Iterable[str]) -> list[DocumentRow]:
        """Return the rows of some documents."""
        return self._rows.named(document_ids)

    def _mine(self) -> Iterator[DocumentRow]:
        return (row for row in self._rows.each() if row.source == self._source)


def _state(row: DocumentRow) -> str:
    """Return the hash of a document's content; that of a document with another status is never the same."""
    return row.content_hash if row.status == "indexed" else ""


def _beginning(digits: str) -> int:
    """Return the first 64 bits of hexadecimal digits."""
    return int(digits[:16] or "0", 16)
