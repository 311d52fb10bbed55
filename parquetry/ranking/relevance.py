"""Relevance of a chunk: 0 to 1, with the same meaning in every search, calibrated from what speaks for it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from parquetry.ranking.relevance_words import Occurrences

Signal = Literal["cosine", "strength", "coverage"]
SATURATION, LENGTH_SHARE = 1.5, 0.5
"""parameters of BM25, as the search index has them"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a chunk."""

    cosine: float | None = None
    """cosine similarity to the query; None if it was not compared"""
    strength: float | None = None
    """BM25 as a share of what a chunk with all words of the query, repeated without end, would have; None if words were
    not compared"""
    coverage: float | None = None
    """share of the query's weight whose words occur; None if words were not compared"""

    def signals(self) -> dict[Signal, float]:
        """Return what is known."""
        known: dict[Signal, float | None] = {
            "cosine": self.cosine,
            "strength": self.strength,
            "coverage": self.coverage,
        }
        return {name: value for name, value in known.items() if value is not None}


def worded(weights: Mapping[str, float], found: Occurrences, mean_length: float) -> tuple[float, float]:
    """Return strength and coverage, as in `Evidence`.

    Args:
        weights: stem of the query -> its weight, stems that no chunk holds included.
        found: occurrences in the chunk.
        mean_length: mean length of the chunks, in tokens.
    """
    total = sum(weights.values())
    if total <= 0:
        return 0.0, 0.0
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * found.length / max(mean_length, 1.0))
    held = [(weights[stem], times) for stem, times in found.times.items() if stem in weights]
    strength = math.fsum(weight * times / (times + norm) for weight, times in held) / total
    return strength, math.fsum(weight for weight, _ in held) / total


def uncalibrated(evidence: Evidence) -> float:
    """Return the cosine similarity within 0 to 1; without one, the share of the query's weight that is covered."""
    known = evidence.cosine if evidence.cosine is not None else evidence.coverage
    return min(1.0, max(0.0, known or 0.0))
