"""Relevance of a chunk: 0 to 1, with the same meaning in every search, calibrated from what speaks for it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from parquetry.ranking.relevance_words import Occurrences

SIGNALS = ("cosine", "coverage", "amount")
"""fields of `Evidence`"""
LOG_ODDS = "log_odds"
"""signal of a reranker: the log-odds of its score"""
KINDS: Mapping[str, tuple[str, ...]] = {
    "hybrid": ("cosine", "coverage", "amount"),
    "vector": ("cosine",),
    "text": ("coverage", "amount"),
    "rerank": (LOG_ODDS,),
}
"""signals that a search of each mode has, and one with a reranker, whatever its mode"""
Role = Literal["embedder", "reranker"]
ROLES: Mapping[Role, tuple[str, ...]] = {"embedder": ("hybrid", "vector", "text"), "reranker": ("rerank",)}
"""keys of `KINDS` that a model of each role has curves of"""
SATURATION, LENGTH_SHARE = 1.5, 0.5
"""parameters of BM25, as the search index has them"""
DECIMALS = 6
"""decimal places of a relevance"""
SURE = 1e-4
"""distance from 0 and 1 within which scores of rerankers are as good as certain: beyond it they differ by rounding"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Signals that speak for a chunk."""

    cosine: float | None = None
    """cosine similarity to the query; None if it was not compared"""
    coverage: float | None = None
    """share of the query's weight whose words occur; None if words were not compared"""
    amount: float | None = None
    """logarithm of 1 + BM25, in words that no chunk holds; None if words were not compared. A chunk has much of a
    page-long query, but a small share"""

    def signals(self) -> dict[str, float]:
        """Return what is known."""
        known = {name: getattr(self, name) for name in SIGNALS}
        return {name: value for name, value in known.items() if value is not None}


def words_evidence(
    weights: Mapping[str, float], found: Occurrences, chunks: int, mean_length: float
) -> tuple[float, float]:
    """Return coverage and amount, as in `Evidence`.

    Args:
        weights: stem of the query -> its weight, stems that no chunk holds included.
        found: occurrences in the chunk.
        chunks: number of chunks searched.
        mean_length: their mean length, in tokens.
    """
    total = math.fsum(weights.values())
    if total <= 0:
        return 0.0, 0.0
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * found.length / max(mean_length, 1.0))
    held = [(weights[stem], times) for stem, times in found.times.items() if stem in weights]
    bm25 = math.fsum(weight * times / (times + norm) for weight, times in held)
    coverage = min(1.0, math.fsum(weight for weight, _ in held) / total)
    return coverage, math.log1p(bm25 / math.log(2 + 2 * chunks))


@dataclass(frozen=True, slots=True)
class Curve:
    """Logistic curve over signals."""

    intercept: float
    weights: Mapping[str, float]
    """none negative: more evidence never lowers the relevance"""

    def relevance(self, signals: Mapping[str, float]) -> float:
        """Return the relevance, 0 to 1, rounded as it is shown: the one of a result may be asked for as the least."""
        logit = self.intercept + math.fsum(weight * signals[name] for name, weight in self.weights.items())
        return round(1 / (1 + math.exp(-min(40.0, max(-40.0, logit)))), DECIMALS)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Curves of one model."""

    role: Role
    model: str
    """id of the embedder or the reranker"""
    curves: Mapping[str, Curve]
    """by key of `KINDS`, those of its role"""


def log_odds(score: float) -> float:
    """Return the log-odds of a reranker's score, at most those of `SURE`.

    Args:
        score: 0 or less (does not answer) to 1 (answers fully).
    """
    inside = min(1 - SURE, max(SURE, score))
    return math.log(inside / (1 - inside))


def reranked_relevance(score: float, calibration: Calibration | None) -> float:
    """Return the relevance that a reranker's score speaks for.

    Args:
        score: as for `log_odds`.
        calibration: of the reranker; None if none is known: the score counts as it is.

    Source: Platt, Probabilistic outputs for support vector machines (1999).
    """
    if calibration is None:
        return round(min(1.0, max(0.0, score)), DECIMALS)
    return calibration.curves["rerank"].relevance({LOG_ODDS: log_odds(score)})


def relevance(evidence: Evidence, calibration: Calibration | None, words: Curve) -> float:
    """Return the relevance that the evidence speaks for.

    Args:
        evidence: of one chunk; without any, its relevance is 0.
        calibration: of the embedder that the cosine is of; None if none is known: the cosine counts as it is.
        words: curve over words alone, which are the same with every embedder.
    """
    signals = evidence.signals()
    if not signals:
        return 0.0
    if "cosine" not in signals:
        return words.relevance(signals)
    if calibration is None:
        return round(min(1.0, max(0.0, signals["cosine"])), DECIMALS)
    return calibration.curves["hybrid" if "coverage" in signals else "vector"].relevance(signals)
