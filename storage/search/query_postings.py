"""The postings and identities of a query's terms, read by one statement: planning several takes longer than reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading
from parquetry.storage.index.ranking_arrays import Floats, identity_parts, text_sums

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class QueryPostings:
    """Postings and identities of some terms, visible or not."""

    terms: npt.NDArray[np.int64]
    """[terms], ascending"""
    places: npt.NDArray[np.int64]
    """[postings]: place of the term in `terms`"""
    chunks: Numbers
    """[postings]: number of the chunk"""
    docs: Numbers
    """[postings]: number of its revision"""
    frequencies: Numbers
    """[postings]: number of times that the chunk has the term"""
    lengths: Numbers
    """[postings]: length of the chunk, in tokens"""
    words: npt.NDArray[np.int64]
    """[words of identities]: place of the term in `terms`"""
    documents: Numbers
    """[words of identities]: number of the document"""
    weights: Floats
    """[words of identities]: weight of the word in the identity"""

    def has(self, terms: Collection[int]) -> bool:
        """Return True if these terms were read."""
        return bool(np.isin(list(terms), self.terms).all())

    def holding(self, copies: npt.NDArray[Any] | None) -> dict[int, int]:
        """Return the number of visible chunks that hold each term; terms that none holds are missing.

        Args:
            copies: [revisions]: number of visible documents of each revision; None if each posting belongs to exactly
                one visible document.
        """
        weights = None if copies is None else copies[self.docs]
        counts = np.bincount(self.places, weights=weights, minlength=len(self.terms)).tolist()
        return {term: int(count) for term, count in zip(self.terms.tolist(), counts, strict=True) if count}

    def scores(
        self, weights: Mapping[int, float], mean: float, copies: npt.NDArray[Any] | None
    ) -> tuple[Numbers, Numbers, npt.NDArray[np.float64]]:
        """Return the visible chunks that hold a term, their revisions and BM25.

        Args:
            weights: term -> its inverse frequency times its weight in the query.
            mean: mean length of the visible chunks, in tokens.
            copies: as for `holding`.
        """
        asked = self._asked(weights)
        kept = asked[self.places] != 0
        if copies is not None:
            kept &= copies[self.docs] > 0
        chunks, docs = self.chunks[kept], self.docs[kept]
        held, scores = text_sums(chunks, asked[self.places[kept]], self.frequencies[kept], self.lengths[kept], mean)
        revisions = np.zeros(int(chunks.max(initial=0)) + 1, np.int32)
        revisions[chunks] = docs
        return held, revisions[held], scores

    def identities(self, weights: Mapping[int, float]) -> tuple[Numbers, Floats]:
        """Return documents and what each word of the query adds to the scores of their identities."""
        asked = self._asked(weights)[self.words]
        return self.documents, identity_parts(asked, self.weights)

    def _asked(self, weights: Mapping[int, float]) -> Floats:
        return np.array([weights.get(term, 0.0) for term in self.terms.tolist()], np.float32)


def read_query_postings(connection: Connection, terms: Collection[int]) -> QueryPostings:
    """Read the postings and the identities that have a term.

    Args:
        connection: connection with an index as current database.
        terms: numbers of terms; not empty.
    """
    # They are joined: `IN` compares each posting with each.
    asked = f"(SELECT unnest([{', '.join(map(str, terms))}]) AS term)"
    with reading():
        found = connection.execute(
            f"""SELECT * FROM (
                SELECT term, chunk AS number, doc, tf, length, 0::FLOAT AS weight FROM parts.postings
                UNION ALL SELECT term, document, -1, 0, 0, weight FROM parts.identities
            ) JOIN {asked} USING (term)"""
        ).fetchnumpy()
    term, number, doc, frequency, length, weight = (
        np.asarray(found[name]) for name in ("term", "number", "doc", "tf", "length", "weight")
    )
    ordered = np.array(sorted(terms), np.int64)
    place = np.searchsorted(ordered, term)
    chunk, identity = doc >= 0, doc < 0
    return QueryPostings(
        ordered,
        *(place[chunk], number[chunk], doc[chunk], frequency[chunk], length[chunk]),
        *(place[identity], number[identity], weight[identity]),
    )
