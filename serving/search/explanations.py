"""Records that explain a search: every candidate with its scores, and why a document is not among the results. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Dropped = Literal["duplicate", "same-document", "beyond-candidates", "diversity", "beyond-k", "threshold"]
"""why a candidate is no result: it has the text of a better one; its document is ranked by a better chunk; it ranked
below what reranking, recency or diversity consider; a better one says nearly the same; it ranked below the `k` best;
its relevance or score is below the one asked for"""
Verdict = Literal["found", "no-such-document", "not-indexed", "filtered", "no-candidate"] | Dropped
"""why a document is no result: `no-such-document` also if it is hidden from the caller; `not-indexed` if it could not
be read; `filtered` if a condition leaves it out; `no-candidate` if it is not among the best of any side"""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Standing:
    """Place of a chunk on one side of a search."""

    rank: int
    """1-based"""
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {"rank": self.rank, "score": round(self.score, _DIGITS)}


def _standing(found: Mapping[str, Any] | None) -> Standing | None:
    return None if found is None else Standing(found["rank"], found["score"])


@dataclass(frozen=True, slots=True)
class SearchCandidate:
    """A chunk that was considered."""

    chunk_id: str
    document_id: str
    filename: str
    vector: Standing | None
    """None if it is not among the best of the vector side"""
    text: Standing | None
    """None if it is not among the best of the keyword side"""
    fused: Standing
    """place in the list that both sides, or the only one, make together"""
    rerank: float | None
    """score of the reranker; None if it did not read the chunk"""
    score: float
    """score that decided in the end"""
    relevance: float | None
    """calibrated, 0 to 1; None if it was not assessed"""
    rank: int | None
    """1-based place among the results; None if it was dropped"""
    dropped: Dropped | None
    """None for a result"""
    duplicate_of: str | None = None
    """id of the better chunk with the same text, or of the same document"""
    identity: float | None = None
    """part of the score on the keyword side that the document's identity adds; None if that side missed the chunk"""

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        for name in ("vector", "text", "fused"):
            told[name] = None if told[name] is None else told[name].as_json()
        for name in ("rerank", "score", "relevance", "identity"):
            told[name] = None if told[name] is None else round(told[name], _DIGITS)
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> SearchCandidate:
        """Return the candidate that `as_json` was called for."""
        known: dict[str, Any] = {name: told[name] for name in cls.__slots__ if name in told}
        return cls(**known | {name: _standing(known[name]) for name in ("vector", "text", "fused")})


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everything that a search considered."""

    query: str
    version: int
    """version of the corpus"""
    candidates: tuple[SearchCandidate, ...]
    """results first, best first; then those that were dropped, in the order of the fused list"""
    search: Mapping[str, Any]
    """counts over what the caller may see, and how sides were fused, as in `parquetry search --explain --json`"""
    vectors: Mapping[str, tuple[float, ...]] | None = None
    """vector of the query by embedder, if asked for"""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """chunk id -> 0-based number of the chunk in its document; not part of the JSON"""

    @property
    def results(self) -> tuple[SearchCandidate, ...]:
        """The candidates that are results, best first."""
        return tuple(each for each in self.candidates if each.dropped is None)

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        vectors = None if self.vectors is None else {name: list(vector) for name, vector in self.vectors.items()}
        return {
            "query": self.query,
            "version": self.version,
            "candidates": [each.as_json() for each in self.candidates],
            "search": dict(self.search),
            **({} if vectors is None else {"vectors": vectors}),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Candidates:
        """Return the candidates that `as_json` was called for."""
        vectors = told.get("vectors")
        return cls(
            told["query"],
            told["version"],
            tuple(SearchCandidate.from_json(each) for each in told["candidates"]),
            told["search"],
            None if vectors is None else {name: tuple(vector) for name, vector in vectors.items()},
        )


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a document is not among the results of a search, or where it is."""

    query: str
    document_id: str
    version: int
    """version of the corpus"""
    verdict: Verdict
    detail: str
    """one sentence for people, with what to do"""
    conditions: tuple[str, ...] = ()
    """filters that leave the document out"""
    vector: Standing | None = None
    """best chunk among all vectors that the caller may see; None without a vector to compare"""
    text: Standing | None = None
    """best chunk among all chunks that have a word of the query; None if it has none"""
    candidate: SearchCandidate | None = None
    """best chunk of the document among the candidates; None if there is none"""

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "query": self.query,
            "document_id": self.document_id,
            "version": self.version,
            "verdict": self.verdict,
            "detail": self.detail,
            "conditions": list(self.conditions),
            "vector": None if self.vector is None else self.vector.as_json(),
            "text": None if self.text is None else self.text.as_json(),
            "candidate": None if self.candidate is None else self.candidate.as_json(),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Absence:
        """Return the absence that `as_json` was called for."""
        return cls(
            told["query"],
            told["document_id"],
            told["version"],
            told["verdict"],
            told["detail"],
            tuple(told["conditions"]),
            _standing(told["vector"]),
            _standing(told["text"]),
            None if told["candidate"] is None else SearchCandidate.from_json(told["candidate"]),
        )
