"""How much alike a known entry and a new one have to be to be compared, by embedder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """What a known entry has to reach."""

    least: float
    """of the cosine, and the weighted share of the words that both texts have, together"""
    words: float = 0.0
    """weight of that share"""

    @property
    def cosine(self) -> float:
        """Cosine below which no share of words that such vectors leave room for would be enough."""
        return self.least - self.words * MOST_SHARED


MOST_SHARED = 0.3
"""share of words in common that texts whose vectors are less alike than the bar do not have"""
GENERIC = Bar(0.35)
"""for an embedder that was not measured: the lowest of the measured ones, because a comparison too many costs some
tokens, and one too few a duplicate that stays"""
_MEASURED = {
    "wordllama:": Bar(0.44, words=0.8),
    # all-MiniLM-L6-v2, as `benchmarks/export_bert.py` writes it.
    "onnx:bert-493f9ae8/": Bar(0.5),
}
"""by how the id of an embedder begins"""


def candidate_bar(embedder_id: str) -> Bar:
    """What a known entry has to reach to be compared with a new one.

    Args:
        embedder_id: as vectors are kept under it.

    Source: docs/decisions/0012-candidate-thresholds.md, docs/decisions/0018-compared-together.md
    """
    return next((bar for start, bar in _MEASURED.items() if embedder_id.startswith(start)), GENERIC)
