"""Reading an index for a search, among what a caller may see: the interface, and its reference, in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading, rows, sql_string, tuples
from parquetry.storage.index.hit_columns import CHUNK_COLUMNS
from parquetry.storage.index.ranking import (
    candidates,
    distance,
    frequencies,
    identity_parts,
    text_scores,
    vector_scores,
)
from parquetry.storage.index.signatures import query_signature, signature_columns
from parquetry.storage.search.query_postings import QueryPostings, read_query_postings
from parquetry.storage.search.visible import RELATION, Visible

Vector = npt.NDArray[np.float32]
EXACT_CHUNKS = 20_000
"""number of visible chunks up to which every vector is compared"""
CANDIDATES = 700
"""minimum number of chunks that the first of two stages keeps in SQL"""
CANDIDATES_PER_HIT = 10
"""chunks of the first stage for each requested hit"""
MOST_POSTINGS = 2_000_000
"""postings of an index up to which those of a query are read (20 bytes each) and ranked as arrays; above, SQL ranks"""


@dataclass(frozen=True, slots=True)
class Scored:
    """Chunks with their scores on a side, in no order: the best, and all that tie with the last of them."""

    chunks: npt.NDArray[Any]
    """numbers of chunks"""
    docs: npt.NDArray[Any]
    """numbers of their revisions"""
    scores: npt.NDArray[np.float64]
    way: str | None = None
    """`exact` or `two-stage`; None on the keyword side"""
    compared: int = 0
    """number of chunks whose vectors were compared exactly"""
    identities: npt.NDArray[np.float64] | None = None
    """share of each score that is the document's identity; None on the vector side"""


NOTHING = Scored(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


class VisibleIndex(Protocol):
    """An index as one caller sees it. A space or term that the caller sees nothing of has no chunks."""

    @property
    def bytes(self) -> int:
        """Bytes that are held for this caller alone, outside of temporary tables."""

    def nearest(self, vector: Vector, embedder: str, depth: int) -> Scored:
        """Return the chunks nearest to a query's vector by cosine similarity, at least `depth` if so many are visible.

        Args:
            vector: float32[dimension], not all zeros.
            embedder: id of an embedder of visible documents.
            depth: number of chunks wanted.
        """

    def cosines(self, chunks: Sequence[int], vectors: Mapping[str, Vector]) -> dict[int, tuple[str, float]]:
        """Return chunk -> its embedder and its cosine similarity to the query, for chunks that have a vector.

        Args:
            chunks: numbers of chunks.
            vectors: id of an embedder -> float32[dimension] of the query.
        """

    def terms_of(self, stems: Collection[str]) -> dict[int, str]:
        """Return the terms that the index has for stems."""

    def holding(self, terms: Collection[int]) -> dict[int, int]:
        """Return the number of visible chunks that hold each term; terms that none holds are missing."""

    def text_scores(self, weights: Mapping[int, float], mean: float) -> Scored:
        """Return all visible chunks that hold a term, with BM25.

        Args:
            weights: term -> its inverse frequency times its weight in the query; not empty.
            mean: mean length of the visible chunks, in tokens.
        """

    def identity_scores(self, weights: Mapping[int, float], docs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the score of the best identity among the visible documents of each of some revisions.

        Args:
            weights: as for `text_scores`, with the terms that no visible chunk holds.
            docs: [n] visible revisions; may repeat.
        """

    def chunk_rows(self, chunks: Sequence[int]) -> list[dict[str, Any]]:
        """Return the columns to show of chunks, in no order."""

    def documents_of(self, docs: Collection[int]) -> Mapping[int, Sequence[dict[str, Any]]]:
        """Return the columns to show of the visible documents that have each revision."""

    def first_documents(self, docs: Collection[int]) -> dict[int, str]:
        """Return the lowest id of the visible documents that have each revision."""


class IndexInFile:
    """An index file read by SQL.

    Each statement is plain and short: a join takes longer to plan than two statements take to run.

    Args:
        connection: connection with the index as current database, with the temporary tables of `visible`.
        visible: what the caller sees.
    """

    def __init__(self, connection: Connection, visible: Visible) -> None:
        self._connection = connection
        self._visible = visible
        self.documents_of = visible.documents_of
        self.first_documents = visible.first_documents
        self._read: QueryPostings | None = None

    @property
    def bytes(self) -> int:
        return self._visible.bytes

    def nearest(self, vector: Vector, embedder: str, depth: int) -> Scored:
        space = self._visible.spaces[embedder]
        query = f"$1::FLOAT[{space.dimension}]"
        if space.chunks <= EXACT_CHUNKS:
            scores = vector_scores(space.number, query, RELATION, None)
            return self._scored(scores, [vector.tolist()], "exact", space.chunks)
        keep = min(max(CANDIDATES, CANDIDATES_PER_HIT * depth), space.chunks)
        signs, large = ([f"({word})::BIGINT" for word in words] for words in query_signature(vector))
        apart = distance(signature_columns(space.dimension), signs, large)
        nearest = candidates(space.number, apart, str(keep), None if self._visible.everything else RELATION)
        scores = vector_scores(space.number, query, None, "nearest")
        return self._scored(f"WITH nearest AS MATERIALIZED ({nearest}) {scores}", [vector.tolist()], "two-stage", keep)

    def _scored(self, sql: str, parameters: Sequence[Any], way: str | None = None, compared: int = 0) -> Scored:
        with reading():
            found = self._connection.execute(sql, list(parameters)).fetchnumpy()
        chunks, docs, scores = (np.asarray(found[name]) for name in ("chunk", "doc", "score"))
        return Scored(chunks, docs, scores, way, compared)

    def cosines(self, chunks: Sequence[int], vectors: Mapping[str, Vector]) -> dict[int, tuple[str, float]]:
        asked = [(embedder, space) for embedder, space in self._visible.spaces.items() if embedder in vectors]
        if not asked or not chunks:
            return {}
        columns = ", ".join(
            f"array_cosine_similarity(vector_{space.number}, ${i}::FLOAT[{space.dimension}])::DOUBLE"
            for i, (_, space) in enumerate(asked, 2)
        )
        found = tuples(
            self._connection,
            f"SELECT chunk, {columns} FROM parts.chunks WHERE chunk IN (SELECT unnest($1::BIGINT[]))",
            [list(chunks), *(vectors[embedder].tolist() for embedder, _ in asked)],
        )
        return {
            chunk: (asked[place][0], values[place])
            for chunk, *values in found
            if (place := next((i for i, value in enumerate(values) if value is not None), None)) is not None
        }

    def terms_of(self, stems: Collection[str]) -> dict[int, str]:
        if not stems:
            return {}
        listed = ", ".join(map(sql_string, sorted(stems)))
        return dict(tuples(self._connection, f"SELECT term, stem FROM parts.terms WHERE stem IN ({listed})"))

    def holding(self, terms: Collection[int]) -> dict[int, int]:
        if not terms:
            return {}
        if (read := self._postings_of(terms)) is not None:
            return read.holding(self._copies)
        listed = f"SELECT unnest([{', '.join(map(str, terms))}]) AS term"
        return dict(tuples(self._connection, frequencies(listed, self._restriction)))

    def text_scores(self, weights: Mapping[int, float], mean: float) -> Scored:
        if (read := self._postings_of(weights)) is not None:
            return Scored(*read.scores(weights, mean, self._copies))
        return self._scored(text_scores(_values(weights), str(mean), self._restriction), [])

    def identity_scores(self, weights: Mapping[int, float], docs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        if (read := self._postings_of(weights)) is not None:
            # The last that a search asks of them.
            self._read = None
            return self._visible.listed.identity_scores(*read.identities(weights), docs)
        with reading():
            found = self._connection.execute(identity_parts(_values(weights))).fetchnumpy()
        numbers, parts = np.asarray(found["document"]), np.asarray(found["part"])
        return self._visible.listed.identity_scores(numbers, parts, docs)

    def _postings_of(self, terms: Collection[int]) -> QueryPostings | None:
        """Return what the index has of terms, read once for all steps of a search; None if SQL has to rank."""
        if self._visible.postings > MOST_POSTINGS:
            return None
        if self._read is None or not self._read.has(terms):
            self._read = read_query_postings(self._connection, terms)
        return self._read

    @property
    def _copies(self) -> npt.NDArray[np.int64] | None:
        """Number of visible documents of each revision; None if every posting belongs to exactly one of them."""
        return None if self._visible.whole else self._visible.copies

    @property
    def _restriction(self) -> str | None:
        """Relation that postings are joined with; None if every posting belongs to exactly one visible document."""
        return None if self._visible.whole else RELATION

    def chunk_rows(self, chunks: Sequence[int]) -> list[dict[str, Any]]:
        return rows(
            self._connection,
            f"SELECT {CHUNK_COLUMNS} FROM parts.chunks WHERE chunk IN (SELECT unnest($1::BIGINT[]))",
            [list(chunks)],
        )


def _values(weights: Mapping[int, float]) -> str:
    """Return a relation `(term, weight)`."""
    listed = ", ".join(f"({term}, {weight!r})" for term, weight in weights.items())
    return f"(SELECT * FROM (VALUES {listed}) AS given(term, weight))"
