"""From which cosine on a known entry is compared with a new one, by embedder."""

from __future__ import annotations

GENERIC = 0.4
"""for an embedder that was not measured"""
_MEASURED = {"wordllama:": 0.4}
"""by how the id of an embedder begins"""


def candidate_threshold(embedder_id: str) -> float:
    """The cosine from which on a known entry may say the same as a new one.

    Args:
        embedder_id: as vectors are kept under it.
    """
    return next((cosine for start, cosine in _MEASURED.items() if embedder_id.startswith(start)), GENERIC)
