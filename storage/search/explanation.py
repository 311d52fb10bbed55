"""Details of a search, for those who ask how its results were found."""

from __future__ import annotations

from dataclasses import dataclass, field


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
