"""Fusion of ranked lists into one, and selection of diverse hits. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from parquetry.embed.base import Vectors

Id = TypeVar("Id", bound=Hashable)
Ranked = Sequence[tuple[Id, float]]
"""ids with their scores, best first"""

VECTOR_WEIGHT = 0.25
"""weight of the vector side in a hybrid search; the keyword side has the rest. With the bundled embedder the best on
average of the weights tried, and nowhere worse than keywords alone (`benchmarks/results/retrieval.json`). The default
of the setting is the same."""
RRF_K = 10
"""constant added to each rank before it is inverted; the higher, the less the first ranks stand out. Cormack, Clarke
and Buettcher (2009) use 60; on the development sets 10 was better (`benchmarks/results/retrieval.json`)."""
MOST_AGED = 2.0**-40
"""minimum share of a score left after any time"""
RELEVANCE_SHARE = 0.7
"""lambda of maximal marginal relevance: the weight of relevance; the rest is the weight of difference from hits chosen
before. The value that Carbonell and Goldstein use for a focused search; it costs 0.007 nDCG@10 on the Cranfield
collection, 0.5 would cost 0.022."""


def convex(vector: Ranked[Id], text: Ranked[Id], weight: float = VECTOR_WEIGHT) -> list[tuple[Id, float]]:
    """Fuse two lists by a convex combination of their min-max-normalised scores.

    Args:
        vector: hits of the vector search.
        text: hits of the keyword search.
        weight: of the vector side, 0 to 1.

    Returns:
        All ids of both lists with scores from 0 to 1, best first; ties in order of first appearance.

    Source: Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, ACM TOIS 2023.
    """
    left, right = _normalised(vector), _normalised(text)
    ids = dict.fromkeys([*left, *right])
    scores = {each: weight * left.get(each, 0.0) + (1 - weight) * right.get(each, 0.0) for each in ids}
    return sorted(scores.items(), key=lambda pair: -pair[1])


def reciprocal_rank(
    vector: Ranked[Id], text: Ranked[Id], weight: float = VECTOR_WEIGHT, k: int = RRF_K
) -> list[tuple[Id, float]]:
    """Fuse two lists by weighted reciprocal ranks; only the order of their scores counts.

    Args:
        vector: hits of the vector search.
        text: hits of the keyword search.
        weight: of the vector side, 0 to 1; 0.5 is the plain form.
        k: see `RRF_K`.

    Returns:
        As `by_rank`.

    Source: Cormack, Clarke, Buettcher: Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
        Methods, SIGIR 2009.
    """
    return by_rank([vector, text], [weight, 1 - weight], k)


def by_rank(
    lists: Sequence[Ranked[Id]], weights: Sequence[float] | None = None, k: int = RRF_K
) -> list[tuple[Id, float]]:
    """Fuse any number of lists with incomparable scores, such as those of namespaces with different embedders.

    Args:
        lists: hits of each search.
        weights: one per list; None for equal weights.
        k: see `RRF_K`.

    Returns:
        All ids of all lists, best first, each with the sum of weight / (k + rank) over the lists that hold it (ranks
        from 1); ties in the order of the lists.
    """
    shares = [1.0] * len(lists) if weights is None else weights
    scores: dict[Id, float] = {}
    for hits, share in zip(lists, shares, strict=True):
        for rank, (each, _) in enumerate(hits, start=1):
            scores[each] = scores.get(each, 0.0) + share / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def aged(score: float, days: float, half_life: float) -> float:
    """Halve a score for each half-life that has passed.

    Args:
        score: on any scale; a negative one decreases further, so that the older of two equals is never the better.
        days: age; a date in the future counts as 0.
        half_life: days.

    Returns:
        score * 2 ** (-days / half_life), divided instead if the score is below zero.
    """
    share: float = max(2.0 ** (-max(days, 0.0) / half_life), MOST_AGED)
    return score * share if score >= 0 else score / share


def diversify(
    relevance: Sequence[float], vectors: Vectors, k: int, relevance_share: float = RELEVANCE_SHARE
) -> list[int]:
    """Choose hits one by one, each by its relevance minus its similarity to the nearest hit chosen before.

    Args:
        relevance: score of each hit on any scale, best first; normalised to 0 to 1 over all of them.
        vectors: float32[n, dimension], one per hit, each of unit length; zeros are similar to nothing.
        k: maximum hits to choose; the first k of a larger choice are the same.
        relevance_share: lambda, 0 to 1; 1 keeps the order of relevance, 0 uses difference alone.

    Returns:
        0-based positions of the chosen hits, in the order of choice; ties by position.

    Source: Carbonell, Goldstein: The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
        Summaries, SIGIR 1998.
    """
    if len(relevance) != len(vectors):
        raise ValueError(f"{len(relevance)} scores, but {len(vectors)} vectors")
    gain = relevance_share * np.array(list(_normalised(list(enumerate(relevance))).values()))
    likeness = np.full(len(gain), -np.inf)
    chosen: list[int] = []
    while len(chosen) < min(k, len(gain)):
        penalty = (1 - relevance_share) * likeness if chosen else 0.0
        worth = gain - penalty
        worth[chosen] = -np.inf
        best = int(worth.argmax())
        chosen.append(best)
        likeness = np.maximum(likeness, vectors @ vectors[best])
    return chosen


def _normalised(hits: Ranked[Id]) -> Mapping[Id, float]:
    if not hits:
        return {}
    scores = [score for _, score in hits]
    low, high = min(scores), max(scores)
    if high == low:
        return {each: 1.0 for each, _ in hits}
    return {each: (score - low) / (high - low) for each, score in hits}
