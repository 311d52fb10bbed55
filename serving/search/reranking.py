"""Reranking, recency and diversity: the steps between the candidates of a search and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from parquetry.embed.base import Vectors
from parquetry.errors import SettingsError
from parquetry.llm.spending import Usage
from parquetry.ranking.fusion import aged, diversify
from parquetry.rerank.base import CANDIDATES_PER_HIT, Reranker
from parquetry.rerank.registry import open_reranker
from parquetry.settings.sections import Settings
from parquetry.storage.database import Connection, tuples
from parquetry.storage.search.searcher import Hit


@dataclass(frozen=True, slots=True)
class Recency:
    """Decay of scores with age."""

    half_life: float
    """age in days that halves a score"""
    now: datetime
    """reference time for ages; UTC"""


@dataclass(frozen=True, slots=True)
class RerankerUse:
    """Use of a reranker in a search."""

    by: str
    """id of the reranker"""
    candidates: int
    usage: Usage

    def as_json(self) -> dict[str, Any]:
        """Return the JSON for `search --explain`."""
        return {
            "by": self.by,
            "candidates": self.candidates,
            "calls": self.usage.calls,
            "tokens": self.usage.input_tokens + self.usage.output_tokens,
            "cost_usd": round(self.usage.cost_usd, 6),
        }


@dataclass(frozen=True, slots=True)
class RerankedHits:
    """Results after reranking and diversification."""

    hits: tuple[Hit, ...]
    """best first"""
    judged: RerankerUse | None
    """None if no reranker was used"""


@dataclass(frozen=True, slots=True)
class Reranking:
    """Steps applied to the candidates of a search before the best are taken."""

    rerank: bool = False
    """True to rescore candidates with the configured reranker, which reads query and text together"""
    recency: Recency | None = None
    """decay of scores by age; None for no decay"""
    diversify: bool = False
    """True to rank near-duplicates of better candidates lower (maximal marginal relevance), exact copies last"""

    def candidates(self, k: int) -> int:
        """Return the number of candidates to fetch for `k` results."""
        return k if self == Reranking() else k * CANDIDATES_PER_HIT

    def apply(self, hits: Sequence[Hit], query: str, k: int, session: Connection, settings: Settings) -> RerankedHits:
        """Return the `k` best of the candidates.

        Args:
            hits: candidates, best first.
            query: query as typed.
            k: maximum number of hits to return.
            session: session on the index that gave the candidates.
            settings: settings with the reranker.

        Raises:
            SettingsError: no reranker is configured, or its configuration is incomplete.
            TransientError: the language model or the service gave no valid answer.
        """
        judged = None
        if self.rerank:
            hits, judged = _reranked(hits, query, settings)
        if self.recency is not None:
            hits = _by_age(hits, self.recency)
        if self.diversify:
            hits = _diverse(hits, k, session)
        return RerankedHits(tuple(hits[:k]), judged)


def configured_reranker(settings: Settings) -> Reranker:
    """Return the reranker that the settings name.

    Raises:
        SettingsError: there is none, or its configuration is incomplete.
        TransientError: the hub cannot be reached.
    """
    if settings.search.rerank is None:
        raise SettingsError(
            'no reranker is configured: set rerank in [search] to "onnx:<folder>" of an exported cross-encoder, to '
            '"onnx:<owner/name>" of one on the hub, to "llm" for the [llm] model, or to "service:<model>" for the '
            "service in [rerank]"
        )
    return open_reranker(settings.search.rerank, settings.llm, settings.rerank, settings.hub)


def _reranked(hits: Sequence[Hit], query: str, settings: Settings) -> tuple[list[Hit], RerankerUse]:
    if settings.search.rerank is not None and not query.strip():
        raise SettingsError("a reranker reads the query, and there is none in words; search without rerank")
    reranker = configured_reranker(settings)
    judgement = reranker.judge(query, [_read(hit) for hit in hits])
    scored = [
        replace(hit, score=score, scores={**hit.scores, "rerank": score})
        for hit, score in zip(hits, judgement.scores.tolist(), strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score), RerankerUse(reranker.id, len(hits), judgement.usage)


def _by_age(hits: Sequence[Hit], recency: Recency) -> list[Hit]:
    """Return hits with their scores decayed by age, best first; `age` among the scores is in days.

    A text found in several places has the age of the newest.
    """
    again = []
    for hit in hits:
        said = max(row["modified_at"] for row in (hit.row, *hit.also_in))
        days = (recency.now - said).total_seconds() / 86_400
        score = aged(hit.score, days, recency.half_life)
        again.append(replace(hit, score=score, scores={**hit.scores, "age": days}))
    return sorted(again, key=lambda hit: -hit.score)


def _read(hit: Hit) -> str:
    """Return the reranker's input: the chunk below its headings, which say what it is about."""
    text: str = hit.row["text"]
    return "\n".join([*(heading for heading in hit.row["headings"] or () if heading not in text), text])


def _diverse(hits: Sequence[Hit], k: int, session: Connection) -> list[Hit]:
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.row["text"], hit)
    different = list(first.values())
    copies = [hit for hit in hits if first[hit.row["text"]] is not hit]
    chosen = diversify([hit.score for hit in different], _vectors(different, session), k)
    return [*(different[i] for i in chosen), *copies]


def _vectors(hits: Sequence[Hit], session: Connection) -> Vectors:
    """Return float32[hits, all dimensions]; vectors of different embedders, and missing ones, are orthogonal."""
    found = tuples(
        session,
        """SELECT revision, chunk_index, any_value(embedder), any_value(vector) FROM parts.every_chunk
        WHERE revision IN (SELECT unnest($1::BIGINT[])) AND chunk_index IN (SELECT unnest($2::INTEGER[]))
            AND vector IS NOT NULL
        GROUP BY revision, chunk_index""",
        [[hit.row["revision"] for hit in hits], [hit.row["chunk_index"] for hit in hits]],
    )
    vectors = {(revision, index): (embedder, vector) for revision, index, embedder, vector in found}
    columns: dict[str, slice] = {}
    width = 0
    for embedder, dimension in sorted({(embedder, len(vector)) for embedder, vector in vectors.values()}):
        columns[embedder] = slice(width, width + dimension)
        width += dimension
    matrix = np.zeros((len(hits), width), np.float32)
    for row, hit in enumerate(hits):
        known = vectors.get((hit.row["revision"], hit.row["chunk_index"]))
        if known is not None:
            matrix[row, columns[known[0]]] = known[1]
    return matrix
