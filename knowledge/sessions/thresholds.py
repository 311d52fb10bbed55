"""From which cosine on a known entry is compared with a new one, by embedder."""

from __future__ import annotations

GENERIC = 0.35
"""for an embedder that was not measured: the lowest of the measured ones, because a comparison too many costs a
question to the language model, and one too few a duplicate that stays"""
_MEASURED = {
    "wordllama:": 0.35,
    # all-MiniLM-L6-v2, as `benchmarks/export_bert.py` writes it.
    "onnx:bert-493f9ae8/": 0.5,
}
"""by how the id of an embedder begins"""


def candidate_threshold(embedder_id: str) -> float:
    """The cosine from which on a known entry may say the same as a new one.

    Args:
        embedder_id: as vectors are kept under it.

    Source: docs/decisions/0012-candidate-thresholds.md
    """
    return next((cosine for start, cosine in _MEASURED.items() if embedder_id.startswith(start)), GENERIC)
