"""The postings of the keyword search in memory, for indexes that are small enough: the SQL of `ranking` over arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, tuples
from parquetry.storage.index.ranking_arrays import text_sums

LARGEST = 10_000_000
"""postings above which the keyword search stays in SQL; they take 6 bytes each, and are read at each publish"""
Copies = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of one index file, by term."""

    terms: Mapping[str, int]
    """stem -> term"""
    starts: npt.NDArray[np.int64]
    """int64[terms + 1]: place of the first posting of each term"""
    chunks: npt.NDArray[np.int32]
    """int32[postings]: number of the chunk"""
    frequencies: npt.NDArray[np.integer[npt.NBitBase]]
    """[postings]: number of times that the chunk has the term"""
    lengths: npt.NDArray[np.int32]
    """int32[chunks of the index file], in tokens"""
    docs: npt.NDArray[np.int32]
    """int32[chunks of the index file]: number of the revision"""

    @property
    def bytes(self) -> int:
        arrays = (self.starts, self.chunks, self.frequencies, self.lengths)
        return sum(array.nbytes for array in arrays) + 150 * len(self.terms)

    def terms_of(self, stems: Collection[str]) -> dict[int, str]:
        """Return the terms that the index has for stems."""
        return {self.terms[stem]: stem for stem in stems if stem in self.terms}

    def holding(self, terms: Collection[int], copies: Copies | None) -> dict[int, int]:
        """Return the number of visible chunks that hold each term; terms that none holds are missing.

        Args:
            terms: numbers of terms.
            copies: int32[revisions]: number of visible documents of each revision; None if each posting belongs to
                exactly one visible document.
        """
        counts = {}
        for term in terms:
            held = self.chunks[self._postings(term)]
            counts[term] = len(held) if copies is None else int(copies[self.docs[held]].sum(dtype=np.int64))
        return {term: count for term, count in counts.items() if count}

    def scores(
        self, weights: Mapping[int, float], mean: float, copies: Copies | None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return chunks, their revisions and BM25, as `parquetry.storage.index.ranking.text_scores` computes it.

        Args:
            weights: term -> its inverse frequency times its weight in the query.
            mean: mean length of the visible chunks, in tokens.
            copies: as for `holding`.
        """
        places = [self._postings(term) for term in weights]
        chunks = np.concatenate([self.chunks[place] for place in places])
        frequency = np.concatenate([self.frequencies[place] for place in places])
        weight = np.repeat(np.array(list(weights.values()), np.float32), [place.stop - place.start for place in places])
        if copies is not None:
            seen = copies[self.docs[chunks]] > 0
            chunks, frequency, weight = chunks[seen], frequency[seen], weight[seen]
        held, scores = text_sums(chunks, weight, frequency, self.lengths[chunks], mean)
        return held, self.docs[held], scores

    def _postings(self, term: int) -> slice:
        return slice(int(self.starts[term]), int(self.starts[term + 1]))


def read_postings(connection: Connection, docs: npt.NDArray[np.int32]) -> Postings | None:
    """Read the postings of an index; None if there are too many.

    Args:
        connection: connection with the index as current database.
        docs: int32[chunks]: number of the revision of each chunk.
    """
    ((count,),) = tuples(connection, "SELECT count(*) FROM parts.postings")
    if count > LARGEST:
        return None
    found = connection.execute("SELECT term, chunk, tf, length FROM parts.postings").fetchnumpy()
    term, chunk, frequency, length = (np.asarray(found[name]) for name in ("term", "chunk", "tf", "length"))
    terms = dict(tuples(connection, "SELECT stem, term FROM parts.terms"))
    order = by_term(term)
    lengths = np.zeros(len(docs), np.int32)
    lengths[chunk] = length
    starts = np.searchsorted(term[order], np.arange(len(terms) + 1))
    small = np.min_scalar_type(int(frequency.max(initial=0)))
    return Postings(terms, starts, chunk[order].astype(np.int32), frequency[order].astype(small), lengths, docs)


def by_term(terms: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the order of postings by term. The first ones are sorted; those of later publishes follow."""
    descents = np.flatnonzero(terms[1:] < terms[:-1])
    if not len(descents):
        return np.arange(len(terms))
    end = int(descents[0]) + 1
    tail = end + np.argsort(terms[end:], kind="stable")
    return np.insert(np.arange(end), np.searchsorted(terms[:end], terms[tail], side="right"), tail)
