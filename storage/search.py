"""All ranking SQL: which chunks answer a query, among those that the caller may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from knowledge.rank import convex
from storage.connect import Connection, reading, rows, tuples

Mode = Literal["hybrid", "vector", "text"]
CANDIDATES = 100
"""hits of each side that a hybrid search fuses"""
K1, B = 1.2, 0.75
"""parameters of BM25: saturation of term frequency, share of length normalisation (Robertson and Zaragoza 2009)"""
TERMS = r"regexp_extract_all(lower(strip_accents({text})), '[\p{{L}}\p{{N}}]+')"
"""the tokeniser, the same for texts and queries"""

_BM25 = f"idf * tf * {K1 + 1} / (tf + {K1} * ({1 - B} + {B} * length / mean))"


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a search runs: sees public documents, those of the organization, and the user's own."""

    user_id: str | None = None
    org_id: str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents may answer; applied before ranking."""

    namespaces: tuple[str, ...] = ()
    """empty for all"""
    filename: str | None = None
    """glob over the file's name or its path within the source"""
    tags: tuple[str, ...] = ()
    """a document must carry all of them"""
    media_type: str | None = None
    caller: Caller | None = None
    """None is the operator, who sees everything"""


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk that answers."""

    score: float
    scores: Mapping[str, float]
    """score of each side that found it"""
    row: Mapping[str, Any]
    """columns of the chunk and its document"""


@dataclass
class Searcher:
    """Searches one snapshot of a corpus through a connection of `storage.connect`."""

    connection: Connection
    filters: Filters = field(default_factory=Filters)

    def __post_init__(self) -> None:
        where, parameters = _where(self.filters)
        with reading():
            self.connection.execute(
                f"""CREATE OR REPLACE TEMP TABLE visible AS
                SELECT revision, document_id, embedder FROM documents WHERE {where}""",
                parameters,
            )

    def embedders(self) -> list[str]:
        """Ids of the models behind the visible documents."""
        found = tuples(self.connection, "SELECT DISTINCT embedder FROM visible ORDER BY 1")
        return [embedder for (embedder,) in found]

    def search(
        self, query: str, vector: npt.NDArray[np.float32] | None, embedder: str | None, mode: Mode, k: int
    ) -> list[Hit]:
        """The `k` best chunks.

        Args:
            query: as typed.
            vector: float32[dimension] of the query; needed unless mode is `text`.
            embedder: id of the model behind `vector`.
            mode: which sides rank.
            k: most hits to return.
        """
        depth = max(k, CANDIDATES) if mode == "hybrid" else k
        by_vector = self._vector(vector, embedder, depth) if vector is not None and mode != "text" else []
        by_text = self._text(query, depth) if mode != "vector" else []
        ranked = {"vector": by_vector, "text": by_text, "hybrid": None}[mode]
        best = (convex(by_vector, by_text) if ranked is None else ranked)[:k]
        sides = {"vector": dict(by_vector), "text": dict(by_text)}
        details = self._details([key for key, _ in best])
        return [
            Hit(score, {side: scores[key] for side, scores in sides.items() if key in scores}, details[key])
            for key, score in best
        ]

    def _vector(self, vector: npt.NDArray[np.float32], embedder: str | None, depth: int) -> list[tuple[str, float]]:
        if not vector.any():
            return []
        size = len(vector)
        return tuples(
            self.connection,
            f"""SELECT v.document_id || '-chunk-' || c.chunk_index,
                array_cosine_similarity(c.vector::FLOAT[{size}], $1::FLOAT[{size}]) AS score
            FROM all_chunks AS c JOIN visible AS v USING (revision)
            WHERE c.embedder = $2 AND c.vector IS NOT NULL
            ORDER BY score DESC, v.document_id, c.chunk_index LIMIT $3""",
            [vector.tolist(), embedder, depth],
        )

    def _text(self, query: str, depth: int) -> list[tuple[str, float]]:
        """BM25 over the visible chunks, its statistics included."""
        terms = sorted(set(tuples(self.connection, f"SELECT {TERMS.format(text='$1')}", [query])[0][0]))
        if not terms:
            return []
        return tuples(
            self.connection,
            f"""WITH tokenised AS MATERIALIZED (
                SELECT v.document_id, c.chunk_index, {TERMS.format(text="c.text")} AS terms
                FROM all_chunks AS c JOIN visible AS v USING (revision)
            ), totals AS (
                SELECT count(*) AS n, avg(len(terms)) AS mean FROM tokenised
            ), occurrences AS (
                SELECT document_id, chunk_index, length, term, count(*) AS tf FROM (
                    SELECT document_id, chunk_index, len(terms) AS length,
                        unnest(list_filter(terms, lambda t: list_contains($1, t))) AS term
                    FROM tokenised
                ) GROUP BY ALL
            ), weights AS (
                SELECT term, ln(1 + (any_value(n) - count(*) + 0.5) / (count(*) + 0.5)) AS idf
                FROM occurrences, totals GROUP BY term
            )
            SELECT document_id || '-chunk-' || chunk_index, sum({_BM25} ORDER BY term) AS score
            FROM occurrences JOIN weights USING (term), totals
            GROUP BY document_id, chunk_index
            ORDER BY score DESC, document_id, chunk_index LIMIT $2""",
            [terms, depth],
        )

    def _details(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        if not ids:
            return {}
        found = rows(
            self.connection,
            """WITH wanted AS (
                SELECT id, id[:36] AS document_id, regexp_extract(id, '-chunk-(\\d+)$', 1)::INTEGER AS chunk_index
                FROM (SELECT unnest($1) AS id)
            ), places AS (
                SELECT w.*, d.* EXCLUDE (document_id, chunks, tokens)
                FROM wanted AS w JOIN documents AS d USING (document_id)
            )
            SELECT p.id AS chunk_id, p.document_id, p.uri, p.filename, p.title, p.namespace, p.source, p.media_type,
                p.tags, p.metadata, c.kind, c.page, c.headings, c.start, c."end", c.text, c.chunk_index, c.tokens
            FROM places AS p JOIN all_chunks AS c ON c.revision = p.revision AND c.chunk_index = p.chunk_index""",
            [list(ids)],
        )
        return {row["chunk_id"]: row for row in found}


def _where(filters: Filters) -> tuple[str, list[Any]]:
    conditions, parameters = ["revision <> 0"], []

    def add(condition: str, *values: Any) -> None:
        for value in values:
            parameters.append(value)
            condition = condition.replace("?", f"${len(parameters)}", 1)
        conditions.append(condition)

    if filters.namespaces:
        add("list_contains(?, namespace)", list(filters.namespaces))
    if filters.filename:
        add("(filename GLOB ? OR path GLOB ?)", filters.filename, filters.filename)
    if filters.tags:
        add("list_has_all(tags, ?)", list(filters.tags))
    if filters.media_type:
        add("media_type = ?", filters.media_type)
    if filters.caller is not None:
        caller = filters.caller
        add(
            "(visibility = 'public' OR (visibility = 'organization' AND org_id = ?)"
            " OR (visibility = 'individual' AND user_id = ?))",
            caller.org_id,
            caller.user_id,
        )
    return " AND ".join(conditions), parameters
