"""Search an index of `parquetry.storage.index.folder` for chunks, among those that a caller may see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parquetry.ids import chunk_id
from parquetry.model import ENTRY_TYPE
from parquetry.ranking.fusion import by_rank, convex, reciprocal_rank
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection
from parquetry.storage.index.build import read_state
from parquetry.storage.index.ranking import IDENTITY_SHARE
from parquetry.storage.search.explanation import Explanation
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.query_words import words_of
from parquetry.storage.search.rankings import MOST_REMEMBERED, Ranked, SideLists, best_order
from parquetry.storage.search.visible import Visible
from parquetry.storage.search.visible_index import NOTHING, IndexInFile, Scored, Vector, VisibleIndex

if TYPE_CHECKING:
    from parquetry.storage.index.vector_memory import IndexMemory

Mode = Literal["hybrid", "vector", "text"]
LOOKAHEAD = 10
"""chunks read beyond the requested number where equal texts are one result: a copy with another title or heading
ranks just below its text"""
_BYTES_PER_DOCUMENT = 16
"""bytes of a visible document in the temporary tables of a searcher"""
DEEPER = 4
"""factor by which the depth grows when the chunks found have too few different texts"""


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found."""

    score: float
    scores: Mapping[str, float]
    """score on each side that found it"""
    row: Mapping[str, Any]
    """columns of the chunk and its document"""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """1-based rank on each side that found it"""
    also_in: tuple[Mapping[str, Any], ...] = ()
    """columns of other chunks with the same text, best first; empty unless equal texts are one hit"""
    relevance: float | None = None
    """0 to 1, comparable across searches; None until it is assessed"""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """values that the relevance was computed from, by signal"""
    identity: float | None = None
    """part of the score on the keyword side that its document's identity adds; None if that side missed it"""


def fold(hits: Sequence[Hit]) -> list[Hit]:
    """Fold hits with equal texts into one: the first of them, with the others' rows in `also_in`.

    Entries are not folded. Each is a statement of its own, with its own sessions behind it.

    Args:
        hits: best first.
    """
    copies: dict[tuple[str, str | None], list[Hit]] = {}
    for hit in hits:
        entry = hit.row["chunk_id"] if hit.row["media_type"] == ENTRY_TYPE else None
        copies.setdefault((hit.row["text"], entry), []).append(hit)
    return [
        replace(first, also_in=tuple(hit.row for hit in others)) if others else first
        for first, *others in copies.values()
    ]


class Searcher:
    """Search one index on behalf of one caller.

    Args:
        connection: connection with an index as current database; only the searcher uses it, and creates temporary
            tables in it.
        filters: the caller and the conditions.
        settings: fusion of the two lists.
        memory: the same index in memory; None to read its file only.

    Raises:
        SettingsError: a filter is not valid.
    """

    def __init__(
        self,
        connection: Connection,
        filters: Filters | None = None,
        settings: SearchSettings | None = None,
        memory: IndexMemory | None = None,
    ) -> None:
        self.connection = connection
        """used by this searcher alone"""
        self._settings = settings or SearchSettings()
        self.language = read_state(connection).language
        self._visible = Visible(connection, filters or Filters())
        self._index = _index_of(connection, self._visible, memory)
        self.explanation = Explanation(self._visible.documents, self._visible.chunks)
        self.weights: Mapping[str, float] = {}
        """stems of the last query with their weights, those that no visible chunk holds included; empty if the keyword
        side did not rank"""
        # Numbers depend on the rest of the corpus, so hits do not carry them.
        self._numbers: dict[tuple[int, int], int] = {}
        # An explanation repeats the search that it explains.
        self._last: SideLists | None = None

    @property
    def bytes(self) -> int:
        """Bytes that are held for this caller alone, roughly."""
        return int(_BYTES_PER_DOCUMENT * self._visible.documents) + self._index.bytes

    @property
    def mean_length(self) -> float:
        """Mean length of the visible chunks, in tokens."""
        return self._visible.length / self._visible.chunks if self._visible.chunks else 0.0

    def dimensions(self) -> dict[str, int]:
        """Return the dimensions of the visible vectors by embedder."""
        return {embedder: space.dimension for embedder, space in self._visible.spaces.items()}

    def cosines(self, hits: Sequence[Hit], vectors: Mapping[str, Vector]) -> list[tuple[str, float] | None]:
        """Return the embedder of each hit and its cosine similarity to the query; None for one without a vector.

        Args:
            hits: hits of the last search.
            vectors: id of an embedder -> float32[dimension] of the query.
        """
        numbers = [self._numbers[hit.row["revision"], hit.row["chunk_index"]] for hit in hits]
        found = self._index.cosines(list(dict.fromkeys(numbers)), vectors)
        return [found.get(number) for number in numbers]

    def embedders(self) -> list[str]:
        """Return the ids of the embedders of the visible documents."""
        return list(self._visible.spaces)

    def namespaces_of(self, embedder: str) -> list[str]:
        """Return the namespaces of the visible documents that a model embedded."""
        return self._visible.namespaces_of(embedder)

    def search(
        self,
        query: str,
        vectors: Mapping[str, Vector],
        mode: Mode,
        k: int,
        *,
        distinct: bool = False,
        context: str | None = None,
    ) -> list[Hit]:
        """Return the `k` best chunks.

        Args:
            query: query as typed.
            vectors: id of an embedder -> float32[dimension] of the query by that model; chunks of other models are not
                ranked on the vector side. With several models, their lists are fused by rank, because their scores
                cannot be compared.
            mode: which sides rank.
            k: maximum number of hits.
            distinct: True to fold equal texts into one hit (`fold`). The search reads as many chunks as it takes to
                find `k` different texts, if so many match.
            context: text whose words weigh in on the keyword side, less than the query's; `vectors` have it in them.
        """
        self.explanation = Explanation(self._visible.documents, self._visible.chunks)
        self.weights, self._numbers = {}, {}
        looked = k + LOOKAHEAD if distinct else k
        depth = max(k, self._settings.depth) if mode == "hybrid" else looked
        while True:
            sides = self._sides(query, vectors, mode, depth, context)
            ranked = self._fused(sides) if mode == "hybrid" else [(each.chunk, each.score) for each in sides[mode]]
            with self._timed("details"):
                hits = self._different(ranked, sides, k) if distinct else self._hits(ranked, sides, k)
            longest = max(map(len, sides.values()))
            if not distinct or len(hits) >= k or longest < depth:
                return hits[:k]
            depth = DEEPER * longest

    def candidates(
        self,
        query: str,
        vectors: Mapping[str, Vector],
        mode: Mode,
        depth: int,
        *,
        best: int,
        context: str | None = None,
    ) -> list[Hit]:
        """Return the chunks on the lists of the sides, best first; equal texts stay apart.

        Args:
            query: as in `search`, like the remaining arguments.
            vectors: see `search`.
            mode: see `search`.
            depth: length of each list. A list is longer where many chunks tie with its last; no more than twice this
                number is returned.
            best: number of chunks that are returned in any case, with all that tie with the last of them.
            context: see `search`.
        """
        self.explanation = Explanation(self._visible.documents, self._visible.chunks)
        self.weights = {}
        sides = self._sides(query, vectors, mode, depth, context)
        ranked = self._fused(sides) if mode == "hybrid" else [(each.chunk, each.score) for each in sides[mode]]
        if ranked:
            last = ranked[min(best, len(ranked)) - 1][1]
            ranked = ranked[: max(2 * depth, sum(score >= last for _, score in ranked))]
        return self._hits(ranked, sides, len(ranked))

    def scored(
        self, query: str, vectors: Mapping[str, Vector], mode: Mode, *, context: str | None = None
    ) -> dict[str, list[Scored]]:
        """Return the score of every visible chunk on each side; a list of lists, one for each embedder."""
        given = {} if mode == "text" else {each: vector for each, vector in vectors.items() if vector.any()}
        spaces = {each: space for each, space in self._visible.spaces.items() if each in given}
        nearest = [self._index.nearest(given[each], each, space.chunks) for each, space in spaces.items()]
        return {"vector": nearest, "text": [] if mode == "vector" else [self._scored_text(query, context)]}

    def _sides(
        self, query: str, vectors: Mapping[str, Vector], mode: Mode, depth: int, context: str | None
    ) -> Mapping[str, Sequence[Ranked]]:
        """Return the list of each side that ranks, `depth` deep."""
        asked = (query, mode, depth, context, *((each, vector.tobytes()) for each, vector in vectors.items()))
        if self._last is not None and self._last.asked == asked:
            self.weights, self.explanation = self._last.weights, replace(self._last.explanation, seconds={})
            return self._last.sides
        self.explanation.vectors, self.explanation.vector_candidates = None, 0
        sides: dict[str, list[Ranked]] = {"vector": [], "text": []}
        if mode != "text":
            with self._timed("vector"):
                sides["vector"] = self._vectors(vectors, depth)
        if mode != "vector":
            with self._timed("text"):
                sides["text"] = self._text(query, depth, context)
        if sum(map(len, sides.values())) <= MOST_REMEMBERED:
            self._last = SideLists(asked, sides, self.weights, replace(self.explanation))
        return sides

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            known = self.explanation.seconds.get(stage, 0.0)
            self.explanation.seconds[stage] = known + perf_counter() - started

    def _fused(self, sides: Mapping[str, Sequence[Ranked]]) -> list[tuple[int, float]]:
        vector, text = ([(each.chunk, each.score) for each in sides[name]] for name in ("vector", "text"))
        weight = self._settings.vector_weight
        if self._settings.fusion == "rrf":
            return reciprocal_rank(vector, text, weight, self._settings.rrf_k)
        return convex(vector, text, weight)

    # --- the two sides

    def _vectors(self, vectors: Mapping[str, Vector], depth: int) -> list[Ranked]:
        lists = [
            self._vector(vectors[embedder], embedder, depth) for embedder in self._visible.spaces if embedder in vectors
        ]
        if len(lists) < 2:
            return lists[0] if lists else []
        docs = {each.chunk: each.doc for side in lists for each in side}
        fused = by_rank([[(each.chunk, each.score) for each in side] for side in lists], k=self._settings.rrf_k)
        return [Ranked(chunk, docs[chunk], score) for chunk, score in fused[:depth]]

    def _vector(self, vector: Vector, embedder: str, depth: int) -> list[Ranked]:
        space = self._visible.spaces.get(embedder)
        if space is None or not vector.any():
            return []
        found = self._index.nearest(vector, embedder, depth)
        self._explain_vectors(found)
        return self._best(found, depth)

    def _explain_vectors(self, found: Scored) -> None:
        known = self.explanation.vectors
        self.explanation.vectors = found.way if known in (None, found.way) else f"{known} and {found.way}"
        self.explanation.vector_candidates += found.compared

    def _text(self, query: str, depth: int, context: str | None) -> list[Ranked]:
        return self._best(self._scored_text(query, context), depth)

    def _scored_text(self, query: str, context: str | None) -> Scored:
        """Return all visible chunks that hold a word of a query, with BM25."""
        asked = words_of(self.connection, self.language, query, context)
        own, earlier, self.explanation.ignored = asked.own, asked.earlier, asked.ignored
        terms = self._index.terms_of(own.keys() | earlier.keys())
        chunks = self._visible.chunks
        holding = self._index.holding(terms) if chunks else {}
        counts = {terms[term]: count for term, count in holding.items()}
        rarity = {
            stem: math.log(1 + (chunks - count + 0.5) / (count + 0.5))
            for stem, count in ((stem, counts.get(stem, 0)) for stem in own.keys() | earlier.keys())
        }
        # Of the query alone: with a long context, no chunk would hold much of it.
        self.weights = {stem: rarity[stem] * weight for stem, weight in own.items()}
        if not holding:
            return NOTHING
        self.explanation.terms = counts
        weights = {
            term: rarity[stem] * (own.get(stem, 0.0) + earlier.get(stem, 0.0)) for term, stem in sorted(terms.items())
        }
        held = {term: weight for term, weight in weights.items() if term in holding}
        found = self._index.text_scores(held, self.mean_length)
        identities = IDENTITY_SHARE * self._index.identity_scores(weights, found.docs)
        return replace(found, scores=found.scores + identities, identities=identities)

    def _best(self, found: Scored, depth: int) -> list[Ranked]:
        """Return the list of a side, best first: the best `depth` chunks of a query, and all that tie with the last.

        Ties are determined here rather than in SQL, where planning would take longer than all the rest.
        """
        score = found.scores
        order = np.argsort(-score, kind="stable") if len(score) <= depth else best_order(score, depth)
        columns = [each for each in (found.chunks, found.docs, score, found.identities) if each is not None]
        ranked = list(map(Ranked, *(each[order].tolist() for each in columns)))
        tied = {each.doc for one, other in pairwise(ranked) if one.score == other.score for each in (one, other)}
        if not tied:
            return ranked
        # Ties are in an order that does not depend on the rest of the corpus.
        first = self._index.first_documents(tied)
        return sorted(ranked, key=lambda each: (-each.score, first.get(each.doc, ""), each.chunk))

    # --- what is shown

    def _different(
        self, ranked: Sequence[tuple[int, float]], sides: Mapping[str, Sequence[Ranked]], k: int
    ) -> list[Hit]:
        """Return the best different texts, at least `k` if so many were ranked."""
        looked = k + LOOKAHEAD
        while True:
            hits = self._hits(ranked, sides, looked)
            folded = fold(hits)
            if len(folded) >= k or looked >= len(ranked):
                return folded
            looked = DEEPER * max(looked, len(hits))

    def _hits(self, ranked: Sequence[tuple[int, float]], sides: Mapping[str, Sequence[Ranked]], k: int) -> list[Hit]:
        """Return the best `k` chunks and all that tie with the last, once for each document that has them."""
        if not ranked:
            return []
        last = ranked[min(k, len(ranked)) - 1][1]
        chosen = {chunk: score for chunk, score in ranked if score >= last}
        scores = {name: {each.chunk: each.score for each in side} for name, side in sides.items()}
        ranks = {name: {each.chunk: i for i, each in enumerate(side, 1)} for name, side in sides.items()}
        identities = {each.chunk: each.identity for each in sides["text"]}
        found = sorted(
            self._rows(list(chosen)),
            key=lambda row: (-chosen[row["chunk"]], row["document_id"], row["chunk_index"]),
        )
        hits = []
        for row in found:
            chunk = row.pop("chunk")
            self._numbers[row["revision"], row["chunk_index"]] = chunk
            hits.append(
                Hit(
                    chosen[chunk],
                    {name: side[chunk] for name, side in scores.items() if chunk in side},
                    row,
                    {name: side[chunk] for name, side in ranks.items() if chunk in side},
                    identity=identities.get(chunk),
                )
            )
        return hits

    def _rows(self, chunks: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the columns of chunks and of each visible document that has them."""
        found = self._index.chunk_rows(chunks)
        documents = self._index.documents_of({row["doc"] for row in found})
        for row in found:
            for document in documents[row.pop("doc")]:
                yield {"chunk_id": chunk_id(document["document_id"], row["chunk_index"]), **document, **row}


def _index_of(connection: Connection, visible: Visible, memory: IndexMemory | None) -> VisibleIndex:
    if memory is None:
        return IndexInFile(connection, visible)
    # A single search reads the file only, and does without the modules of the copy in memory.
    from parquetry.storage.search.visible_memory import IndexInMemory

    return IndexInMemory(memory, connection, visible)
