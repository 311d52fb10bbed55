"""Search an index of `parquetry.storage.index.folder` for chunks, among those that a caller may see."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from parquetry.ids import chunk_id
from parquetry.language.stems import stop_words
from parquetry.model import ENTRY_TYPE
from parquetry.ranking.fusion import by_rank, convex, reciprocal_rank
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, reading, rows, sql_string, tuples
from parquetry.storage.index.build import read_state
from parquetry.storage.index.ranking import K3, candidates, distance, frequencies, text_scores, vector_scores
from parquetry.storage.index.signatures import query_signature, signature_columns
from parquetry.storage.index.tokens import query_tokens
from parquetry.storage.index.words import stems_of
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.visible import RELATION, Visible

Mode = Literal["hybrid", "vector", "text"]
Vector = npt.NDArray[np.float32]
EXACT_CHUNKS = 20_000
"""number of visible chunks up to which every vector is compared"""
CANDIDATES = 700
"""minimum number of chunks that the first of two stages keeps"""
CANDIDATES_PER_HIT = 10
"""chunks of the first stage for each requested hit"""
LOOKAHEAD = 10
"""chunks read beyond the requested number where equal texts are one result: a copy with another title or heading
ranks just below its text"""
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
    return [replace(first, also_in=tuple(hit.row for hit in others)) for first, *others in copies.values()]


@dataclass
class Explanation:
    """Details of a search. Counts only what the caller may see."""

    documents: int
    chunks: int
    vectors: str | None = None
    """`exact` or `two-stage`; None if no vectors were compared"""
    vector_candidates: int = 0
    """number of chunks whose vectors were compared exactly"""
    terms: dict[str, int] = field(default_factory=dict)
    """stems searched for, with the number of visible chunks that hold each"""
    ignored: tuple[str, ...] = ()
    """stop words of the query"""
    seconds: dict[str, float] = field(default_factory=dict)
    """time in seconds by stage"""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A chunk in the list of a side."""

    chunk: int
    doc: int
    score: float


class Searcher:
    """Search one index on behalf of one caller.

    Args:
        connection: connection with an index as current database; only the searcher uses it, and creates temporary
            tables in it.
        filters: the caller and the conditions.
        settings: fusion of the two lists.

    Raises:
        SettingsError: a filter is not valid.
    """

    def __init__(
        self, connection: Connection, filters: Filters | None = None, settings: SearchSettings | None = None
    ) -> None:
        self.connection = connection
        """used by this searcher alone"""
        self._settings = settings or SearchSettings()
        self._language = read_state(connection).language
        self._visible = Visible(connection, filters or Filters())
        self.explanation = Explanation(self._visible.documents, self._visible.chunks)

    def embedders(self) -> list[str]:
        """Return the ids of the embedders of the visible documents."""
        return list(self._visible.spaces)

    def namespaces_of(self, embedder: str) -> list[str]:
        """Return the namespaces of the visible documents that a model embedded."""
        return self._visible.namespaces_of(embedder)

    def search(
        self, query: str, vectors: Mapping[str, Vector], mode: Mode, k: int, *, distinct: bool = False
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
        """
        self.explanation = Explanation(self._visible.documents, self._visible.chunks)
        looked = k + LOOKAHEAD if distinct else k
        depth = max(k, self._settings.depth) if mode == "hybrid" else looked
        while True:
            sides = self._sides(query, vectors, mode, depth)
            ranked = self._fused(sides) if mode == "hybrid" else [(each.chunk, each.score) for each in sides[mode]]
            with self._timed("details"):
                hits = self._different(ranked, sides, k) if distinct else self._hits(ranked, sides, k)
            longest = max(map(len, sides.values()))
            if not distinct or len(hits) >= k or longest < depth:
                return hits[:k]
            depth = DEEPER * longest

    def _sides(
        self, query: str, vectors: Mapping[str, Vector], mode: Mode, depth: int
    ) -> Mapping[str, Sequence[_Ranked]]:
        """Return the list of each side that ranks, `depth` deep."""
        self.explanation.vectors, self.explanation.vector_candidates = None, 0
        sides: dict[str, list[_Ranked]] = {"vector": [], "text": []}
        if mode != "text":
            with self._timed("vector"):
                sides["vector"] = self._vectors(vectors, depth)
        if mode != "vector":
            with self._timed("text"):
                sides["text"] = self._text(query, depth)
        return sides

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            known = self.explanation.seconds.get(stage, 0.0)
            self.explanation.seconds[stage] = known + perf_counter() - started

    def _fused(self, sides: Mapping[str, Sequence[_Ranked]]) -> list[tuple[int, float]]:
        vector, text = ([(each.chunk, each.score) for each in sides[name]] for name in ("vector", "text"))
        weight = self._settings.vector_weight
        if self._settings.fusion == "rrf":
            return reciprocal_rank(vector, text, weight, self._settings.rrf_k)
        return convex(vector, text, weight)

    # --- the two sides

    def _vectors(self, vectors: Mapping[str, Vector], depth: int) -> list[_Ranked]:
        lists = [
            self._vector(vectors[embedder], embedder, depth) for embedder in self._visible.spaces if embedder in vectors
        ]
        if len(lists) < 2:
            return lists[0] if lists else []
        docs = {each.chunk: each.doc for side in lists for each in side}
        fused = by_rank([[(each.chunk, each.score) for each in side] for side in lists], k=self._settings.rrf_k)
        return [_Ranked(chunk, docs[chunk], score) for chunk, score in fused[:depth]]

    def _vector(self, vector: Vector, embedder: str, depth: int) -> list[_Ranked]:
        space = self._visible.spaces.get(embedder)
        if space is None or not vector.any():
            return []
        query = f"$1::FLOAT[{space.dimension}]"
        if space.chunks <= EXACT_CHUNKS:
            self._explain_vectors("exact", space.chunks)
            scores = vector_scores(space.number, query, RELATION, None)
            return self._best(scores, [vector.tolist()], depth)
        keep = min(max(CANDIDATES, CANDIDATES_PER_HIT * depth), space.chunks)
        self._explain_vectors("two-stage", keep)
        signs, large = ([f"({word})::BIGINT" for word in words] for words in query_signature(vector))
        apart = distance(signature_columns(space.dimension), signs, large)
        nearest = candidates(space.number, apart, str(keep), None if self._visible.everything else RELATION)
        scores = vector_scores(space.number, query, None, "nearest")
        return self._best(f"WITH nearest AS MATERIALIZED ({nearest}) {scores}", [vector.tolist()], depth)

    def _explain_vectors(self, way: str, compared: int) -> None:
        known = self.explanation.vectors
        self.explanation.vectors = way if known in (None, way) else f"{known} and {way}"
        self.explanation.vector_candidates += compared

    def _text(self, query: str, depth: int) -> list[_Ranked]:
        terms = self._terms(query)
        if not terms or not self._visible.chunks:
            return []
        chunks, visible = self._visible.chunks, None if self._visible.whole else RELATION
        holding = dict(tuples(self.connection, frequencies(", ".join(str(term) for term in terms), visible)))
        if not holding:
            return []
        self.explanation.terms = {terms[term][0]: count for term, count in holding.items()}
        weights = ", ".join(
            f"({term}, {math.log(1 + (chunks - count + 0.5) / (count + 0.5)) * terms[term][1]!r})"
            for term, count in sorted(holding.items())
        )
        mean = str(self._visible.length / chunks)
        scores = text_scores(f"(VALUES {weights}) AS weights(term, weight)", mean, visible)
        return self._best(scores, [], depth)

    def _terms(self, query: str) -> dict[int, tuple[str, float]]:
        """Return the terms of a query with stem and weight: stop words only if it has no others."""
        words = Counter(word for (word,) in tuples(self.connection, f"SELECT unnest({query_tokens(query)})", [query]))
        stops = stop_words(self._language).intersection(words)
        asked = sorted(set(words) - stops) or sorted(words)
        self.explanation.ignored = tuple(sorted(set(words).difference(asked)))
        times: Counter[str] = Counter()
        for word, stem in zip(asked, stems_of(asked, self._language), strict=True):
            times[stem] += words[word]
        if not times:
            return {}
        stems = ", ".join(map(sql_string, sorted(times)))
        found = tuples(self.connection, f"SELECT term, stem FROM parts.terms WHERE stem IN ({stems})")
        return {term: (stem, times[stem] * (K3 + 1) / (times[stem] + K3)) for term, stem in found}

    def _best(self, scores: str, parameters: Sequence[Any], depth: int) -> list[_Ranked]:
        """Return the list of a side, best first: the best `depth` chunks of a query, and all that tie with the last.

        Ties are determined here rather than in SQL, where planning would take longer than all the rest.
        """
        with reading():
            found = self.connection.execute(scores, list(parameters)).fetchnumpy()
        chunk, doc, score = (np.asarray(found[name]) for name in ("chunk", "doc", "score"))
        if len(score) > depth:
            kept = score >= np.partition(score, -depth)[-depth]
            chunk, doc, score = chunk[kept], doc[kept], score[kept]
        order = np.argsort(-score, kind="stable")
        ranked = [
            _Ranked(*values) for values in zip(*(each[order].tolist() for each in (chunk, doc, score)), strict=True)
        ]
        tied = {each.doc for one, other in pairwise(ranked) if one.score == other.score for each in (one, other)}
        # Ties are in an order that does not depend on the rest of the corpus.
        first = self._visible.first_documents(tied)
        return sorted(ranked, key=lambda each: (-each.score, first.get(each.doc, ""), each.chunk))

    # --- what is shown

    def _different(
        self, ranked: Sequence[tuple[int, float]], sides: Mapping[str, Sequence[_Ranked]], k: int
    ) -> list[Hit]:
        """Return the best different texts, at least `k` if so many were ranked."""
        looked = k + LOOKAHEAD
        while True:
            hits = self._hits(ranked, sides, looked)
            folded = fold(hits)
            if len(folded) >= k or looked >= len(ranked):
                return folded
            looked = DEEPER * max(looked, len(hits))

    def _hits(self, ranked: Sequence[tuple[int, float]], sides: Mapping[str, Sequence[_Ranked]], k: int) -> list[Hit]:
        """Return the best `k` chunks and all that tie with the last, once for each document that has them."""
        if not ranked:
            return []
        last = ranked[min(k, len(ranked)) - 1][1]
        chosen = {chunk: score for chunk, score in ranked if score >= last}
        scores = {name: {each.chunk: each.score for each in side} for name, side in sides.items()}
        ranks = {name: {each.chunk: i for i, each in enumerate(side, 1)} for name, side in sides.items()}
        found = sorted(
            self._rows(list(chosen)),
            key=lambda row: (-chosen[row["chunk"]], row["document_id"], row["chunk_index"]),
        )
        hits = []
        for row in found:
            chunk = row.pop("chunk")
            hits.append(
                Hit(
                    chosen[chunk],
                    {name: side[chunk] for name, side in scores.items() if chunk in side},
                    row,
                    {name: side[chunk] for name, side in ranks.items() if chunk in side},
                )
            )
        return hits

    def _rows(self, chunks: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield the columns of chunks and of each visible document that has them.

        Two plain statements: a join takes longer to plan than both take to run.
        """
        found = rows(
            self.connection,
            """SELECT rowid AS chunk, doc, kind, page, headings, start, "end", text, chunk_index, tokens, revision
            FROM parts.chunks WHERE rowid IN (SELECT unnest($1::BIGINT[]))""",
            [list(chunks)],
        )
        documents = self._visible.documents_of({row["doc"] for row in found})
        for row in found:
            for document in documents[row["doc"]]:
                identity = {"chunk_id": chunk_id(document["document_id"], row["chunk_index"])}
                yield {name: value for name, value in (identity | document | row).items() if name != "doc"}
