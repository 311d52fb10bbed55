"""Minimum similarity at which a known entry is compared with a new one, by embedder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """Minimum similarity of a known entry."""

    least: float
    """minimum of the cosine plus the weighted share of words common to both texts"""
    words: float = 0.0
    """weight of that share"""

    @property
    def cosine(self) -> float:
        """Return the cosine below which no likely share of common words would be enough."""
        return self.least - self.words * MOST_SHARED


MOST_SHARED = 0.3
"""share of common words that texts with vectors below the bar do not reach"""
GENERIC = Threshold(0.35)
"""for an embedder that was not measured: the lowest measured value, because an unneeded comparison costs some tokens,
and a missing one leaves a duplicate"""
_MEASURED = {
    "wordllama:": Threshold(0.44, words=0.8),
    # all-MiniLM-L6-v2, as `benchmarks/export_bert.py` writes it.
    "onnx:bert-493f9ae8/": Threshold(0.5),
}
"""by prefix of the embedder's id"""


def candidate_bar(embedder_id: str) -> Threshold:
    """Return the minimum similarity at which a known entry is compared with a new one.

    Args:
        embedder_id: under which vectors are stored.

    Source: docs/decisions/0012-candidate-thresholds.md, docs/decisions/0018-compared-together.md
    """
    return next((bar for start, bar in _MEASURED.items() if embedder_id.startswith(start)), GENERIC)
