"""The visible documents of each revision, as arrays: one revision may be the text of several documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading
from parquetry.storage.index.ranking import SCALE


@dataclass(frozen=True, slots=True)
class VisibleDocuments:
    """The documents that a caller may see, by revision."""

    docs: npt.NDArray[Any]
    """[documents]: number of the revision, ascending"""
    rowids: npt.NDArray[Any]
    """[documents]: rowid of the document"""
    numbers: npt.NDArray[np.int32]
    """[documents]: number of the document"""
    starts: npt.NDArray[np.int64] | None
    """[visible revisions]: place of the first document of each; None if no two documents share a revision"""
    places: npt.NDArray[np.int64]
    """[revisions, up to the last visible one]: place in `starts`; number of the only document where that is None"""
    count: int
    """one more than the largest number of a document"""

    @property
    def bytes(self) -> int:
        arrays = (self.docs, self.rowids, self.numbers, self.starts, self.places)
        return sum(array.nbytes for array in arrays if array is not None)

    def rowids_of(self, docs: Collection[int]) -> npt.NDArray[Any]:
        """Return the rowids of the documents that have one of some revisions."""
        wanted = np.array(sorted(docs), np.int64)
        starts, ends = np.searchsorted(self.docs, wanted), np.searchsorted(self.docs, wanted, side="right")
        return np.concatenate([self.rowids[:0], *(self.rowids[a:b] for a, b in zip(starts, ends, strict=True))])

    def identity_scores(
        self, numbers: npt.NDArray[Any], parts: npt.NDArray[Any], docs: npt.NDArray[Any]
    ) -> npt.NDArray[np.float64]:
        """Return the score of the best identity among the visible documents of each of some revisions.

        Args:
            numbers: documents, visible or not, once for each word of the query that their identity has.
            parts: what that word adds, as in `parquetry.storage.index.ranking.identity_parts`.
            docs: [n] visible revisions; may repeat.

        Returns:
            float64[n], 0 for identities without a word of the query.
        """
        sums = np.bincount(numbers, weights=parts, minlength=self.count)
        if self.starts is not None:
            sums = np.maximum.reduceat(sums[self.numbers], self.starts)
        found: npt.NDArray[np.float64] = sums.take(self.places.take(docs)) / SCALE
        return found


def read_visible_documents(connection: Connection) -> VisibleDocuments:
    """Read the temporary table of the visible documents.

    Args:
        connection: connection with the temporary tables of `parquetry.storage.search.visible`.
    """
    with reading():
        found = connection.execute("SELECT doc, place, number FROM visible_documents ORDER BY ALL").fetchnumpy()
    docs, rowids, numbers = (np.asarray(found[name]) for name in ("doc", "place", "number"))
    starts = np.flatnonzero(np.diff(docs, prepend=-1))
    shared = len(starts) < len(docs)
    places = np.zeros(int(docs.max(initial=-1)) + 1, np.int64)
    places[docs[starts]] = np.arange(len(starts)) if shared else numbers
    return VisibleDocuments(docs, rowids, numbers, starts if shared else None, places, int(numbers.max(initial=-1)) + 1)
