"""Reading an index in memory for a search, among what a caller may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading
from parquetry.storage.index.vector_memory import IndexMemory
from parquetry.storage.index.vector_memory_scan import Codes, nearest_codes
from parquetry.storage.index.vector_memory_space import NONE, SpaceMemory, Vectors
from parquetry.storage.search import visible_index
from parquetry.storage.search.visible import RELATION, Visible
from parquetry.storage.search.visible_index import CANDIDATES_PER_HIT, IndexInFile, Scored, Vector

CANDIDATES = 3_000
"""minimum number of chunks that the first of two stages keeps: all bits count here, which finds less with as many
candidates as the half that counts in SQL, but a scan and a comparison take a fraction of the time"""
MOST_COMPARED = 20_000 * 256
"""floats up to which all visible vectors are compared; those of a caller who sees few chunks are copied for that, once
for all searches"""
SCANNED_SHARE = 0.5
"""share of visible slots from which all codes are scanned and the invisible ones dropped; below it, the visible codes
are copied"""
SPARE = 1.2
"""candidates that such a scan takes beyond those expected to be visible, as a factor"""
_ROUNDING = 1e-4
"""possible error of a cosine similarity in float32, with a margin"""
_Slots = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The slots of a space that a caller may see."""

    space: SpaceMemory
    slots: _Slots | None
    """int64[n], ascending; None for all"""
    count: int
    codes: Codes
    """uint8[n, bytes]: of the visible slots, or of all where `visible` tells them apart"""
    visible: npt.NDArray[np.bool_] | None
    """bool[slots of the space]; None if every code is of a visible slot"""
    vectors: Vectors | None
    """float32[n, dimension]: of the visible slots, if every one of them is compared"""

    @property
    def bytes(self) -> int:
        """Bytes that are held for this caller alone."""
        copied = () if self.slots is None else (self.slots, self.codes, self.vectors)
        return sum(array.nbytes for array in (*copied, self.visible) if array is not None)

    def candidates(self, vector: Vector, keep: int) -> _Slots:
        """Return the visible slots with the nearest codes.

        Args:
            vector: float32[dimension] of the query.
            keep: number of slots; all that are visible if there are fewer.
        """
        keep = min(keep, self.count)
        if self.visible is None:
            places = nearest_codes(self.codes, vector, keep)
            return places if self.slots is None else self.slots[places]
        total = len(self.codes)
        asked = min(total, int(SPARE * keep * total / max(1, self.count)))
        while True:
            places = nearest_codes(self.codes, vector, asked)
            places = places[self.visible[places]]
            if len(places) >= keep or asked == total:
                return places[:keep]
            asked = min(total, 2 * asked)


class IndexInMemory:
    """An index in memory. What is not held there is read by SQL.

    Args:
        memory: the index.
        connection: connection with the same index as current database, with the temporary tables of `visible`.
        visible: what the caller sees.
    """

    def __init__(self, memory: IndexMemory, connection: Connection, visible: Visible) -> None:
        self._memory = memory
        self._connection = connection
        self._visible = visible
        self._file = IndexInFile(connection, visible)
        self._seen: dict[str, _Seen] = {}
        with reading():
            self._copies = self._read_copies()
            """int32[revisions + 1]: number of visible documents of each revision; the last, of NONE, is 0"""
        self._listed = visible.listed

    def _read_copies(self) -> npt.NDArray[np.int32]:
        found = self._connection.execute(f"SELECT doc, copies FROM {RELATION}").fetchnumpy()
        docs = np.asarray(found["doc"])
        copies = np.zeros(max(int(docs.max(initial=NONE)), int(self._memory.docs.max(initial=NONE))) + 2, np.int32)
        copies[docs] = np.asarray(found["copies"])
        return copies

    @property
    def bytes(self) -> int:
        """Bytes that are held for this caller alone."""
        return self._listed.bytes + self._copies.nbytes + sum(seen.bytes for seen in self._seen.values())

    # --- vectors

    def nearest(self, vector: Vector, embedder: str, depth: int) -> Scored:
        seen = self._seen.get(embedder)
        if seen is None:
            seen = self._seen[embedder] = self._look(self._memory.spaces[embedder])
        space = seen.space
        keep = max(CANDIDATES, CANDIDATES_PER_HIT * depth)
        if seen.vectors is not None:
            places = _best_places(seen.vectors, _inverse_norms(seen), vector, depth)
            slots = places if seen.slots is None else seen.slots[places]
            way, compared = "exact", seen.count
        else:
            chosen = seen.candidates(vector, keep)
            vectors = space.buffers.vectors[chosen]
            slots = chosen[_best_places(vectors, space.buffers.inverse_norms[chosen], vector, depth)]
            way, compared = ("exact" if seen.count <= keep else "two-stage"), len(chosen)
        return Scored(space.chunks[slots], space.docs[slots], _cosines(space, slots, vector), way, compared)

    def _look(self, space: SpaceMemory) -> _Seen:
        buffers, total = space.buffers, space.count
        visible = self._copies[space.docs] > 0
        count = int(visible.sum())
        # Depends on what is visible alone, as everything that decides about an answer.
        exact = count <= visible_index.EXACT_CHUNKS and count * space.dimension <= MOST_COMPARED
        if count == total:
            vectors = buffers.vectors[:total] if exact else None
            return _Seen(space, None, count, buffers.codes[:total], None, vectors)
        slots = np.flatnonzero(visible)
        if exact:
            return _Seen(space, slots, count, buffers.codes[:0], None, buffers.vectors[slots])
        if count >= SCANNED_SHARE * total:
            return _Seen(space, None, count, buffers.codes[:total], visible, None)
        return _Seen(space, slots, count, buffers.codes[slots], None, None)

    def cosines(self, chunks: Sequence[int], vectors: Mapping[str, Vector]) -> dict[int, tuple[str, float]]:
        found: dict[int, tuple[str, float]] = {}
        for embedder in (each for each in self._visible.spaces if each in vectors):
            space = self._memory.spaces[embedder]
            slots = space.slots[np.asarray(chunks, np.int64)]
            slots = slots[slots != NONE]
            cosines = _cosines(space, slots, vectors[embedder]).tolist()
            for chunk, cosine in zip(space.chunks[slots].tolist(), cosines, strict=True):
                found.setdefault(chunk, (embedder, cosine))
        return found

    # --- words

    def terms_of(self, stems: Collection[str]) -> dict[int, str]:
        postings = self._memory.postings
        return postings.terms_of(stems) if postings else self._file.terms_of(stems)

    def holding(self, terms: Collection[int]) -> dict[int, int]:
        postings = self._memory.postings
        return postings.holding(terms, self._restriction) if postings else self._file.holding(terms)

    def text_scores(self, weights: Mapping[int, float], mean: float) -> Scored:
        postings = self._memory.postings
        if postings is None:
            return self._file.text_scores(weights, mean)
        return Scored(*postings.scores(weights, mean, self._restriction))

    def identity_scores(self, weights: Mapping[int, float], docs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        identities = self._memory.identities
        if identities is None:
            return self._file.identity_scores(weights, docs)
        return self._listed.identity_scores(*identities.parts(weights), docs)

    @property
    def _restriction(self) -> npt.NDArray[np.int32] | None:
        return None if self._visible.whole else self._copies

    # --- what is shown

    def chunk_rows(self, chunks: Sequence[int]) -> list[dict[str, Any]]:
        return self._memory.chunks.of(chunks)

    def documents_of(self, docs: Collection[int]) -> Mapping[int, Sequence[dict[str, Any]]]:
        if self._memory.documents is None:
            return self._file.documents_of(docs)
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._memory.documents.of(self._listed.rowids_of(docs).tolist()):
            found[row.pop("doc")].append(row)
        return found

    def first_documents(self, docs: Collection[int]) -> dict[int, str]:
        if self._memory.documents is None:
            return self._file.first_documents(docs)
        lowest: dict[int, str] = {}
        for row in self._memory.documents.values(self._listed.rowids_of(docs), ("doc", "document_id")) if docs else ():
            lowest[row["doc"]] = min(row["document_id"], lowest.get(row["doc"], row["document_id"]))
        return lowest


def _inverse_norms(seen: _Seen) -> npt.NDArray[np.float64]:
    norms = seen.space.buffers.inverse_norms
    return norms[: seen.count] if seen.slots is None else norms[seen.slots]


def _best_places(
    vectors: Vectors, inverse_norms: npt.NDArray[np.float64], vector: Vector, depth: int
) -> npt.NDArray[np.int64]:
    """Return the places of the best vectors, and of all that could be as good as the last but for rounding."""
    # Not by the operator, for which BLAS takes several threads, each as slow as the busiest processor.
    rough = np.vecdot(vectors, vector) * inverse_norms
    if len(rough) <= depth:
        return np.arange(len(rough))
    last = np.partition(rough, -depth)[-depth]
    return np.flatnonzero(rough >= last - _ROUNDING * np.linalg.norm(vector))


def _cosines(space: SpaceMemory, slots: npt.NDArray[Any], vector: Vector) -> npt.NDArray[np.float64]:
    """Return cosine similarities, rounded to float32, so that equal vectors have equal ones."""
    query = vector.astype(np.float64)
    products = np.einsum("ij,j->i", space.buffers.vectors[slots].astype(np.float64), query)
    cosines = products * space.buffers.inverse_norms[slots] / np.linalg.norm(query)
    rounded: npt.NDArray[np.float32] = np.clip(cosines, -1, 1).astype(np.float32)
    return rounded.astype(np.float64)
