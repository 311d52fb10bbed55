"""One search: its request, its ranking, its response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.results import result_json
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit, Mode

Level = Literal["chunk", "document"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search request: everything that determines the results."""

    query: str = ""
    """query as typed; may be empty if a vector is given"""
    mode: Mode = "hybrid"
    k: int = 5
    min_relevance: float | None = None
    """relevance below which hits are left out, 0 to 1"""
    filters: Filters = field(default_factory=Filters)
    level: Level = "chunk"
    """`chunk` to rank all chunks, `document` to rank documents (`best_of_each`)"""
    look: Reranking = field(default_factory=Reranking)
    """steps applied to the candidates before the best are taken"""
    duplicates: bool = False
    """True to return equal texts as separate results instead of one that names the other places"""
    vector: tuple[float, ...] | None = None
    """vector to search by instead of the query's; chunks of embedders with another dimension are not ranked by it"""
    context: str | None = None
    """text that weighs in, less than the query: earlier turns of a conversation, for example"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Outcome of ranking."""

    hits: tuple[Hit, ...]
    """best first"""
    explanation: Mapping[str, Any]
    """counts over what the caller may see, and seconds by stage"""


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """Ranked chunks, and the version of the corpus they come from."""

    request: SearchRequest
    version: int
    seconds: float
    """duration of this search; costs shared by a batch are split evenly"""
    cached: bool
    ranking: Ranking

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The results, best first."""
        return self.ranking.hits

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry search --json` prints."""
        return {
            "query": self.request.query,
            "mode": self.request.mode,
            "version": self.version,
            "seconds": round(self.seconds, 4),
            "results": [result_json(hit) for hit in self.hits],
        }
