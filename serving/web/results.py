"""Results of a search as a page shows them: where a passage stands, how well it fits, and its best lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from parquetry.serving.search.citations import Citation, cite
from parquetry.serving.web.marking import MarkedPart, columns, extract, headings_of, marked
from parquetry.storage.search.searcher import Hit

WEAK = 0.3
"""relevance below which results hardly ever answer"""


@dataclass(frozen=True, slots=True)
class SearchForm:
    """A question with its filters, as the form of the page has them."""

    q: str = ""
    mode: str = "hybrid"
    namespace: str | None = None
    source: str | None = None
    media_type: str | None = None
    tag: str | None = None
    since: date | None = None
    until: date | None = None
    where: str | None = None
    """condition in SQL"""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, as an address has them."""
        given = {
            "namespace": self.namespace,
            "source": self.source,
            "type": self.media_type,
            "tag": self.tag,
            "since": self.since,
            "until": self.until,
            "where": self.where,
        }
        return {name: str(value) for name, value in given.items() if value is not None}

    @property
    def filtered(self) -> bool:
        """True if a filter is set."""
        return bool(self.filters)


@dataclass(frozen=True, slots=True)
class Result:
    """A passage that was found."""

    document_id: str
    chunk_id: str
    chunk_index: int
    """0-based"""
    title: str
    filename: str
    place: str
    """page, sheet or slide; empty for documents without"""
    headings: str
    namespace: str
    source: str
    percent: int | None
    """match, 0 to 100; None if relevance is not calibrated for the embedder"""
    table: str
    """column names, if the best line is a row of a table"""
    lines: tuple[MarkedPart, ...]
    also_in: int
    """number of other places with the same text"""

    @property
    def weak(self) -> bool:
        """True for a result that hardly answers."""
        return self.percent is not None and self.percent < WEAK * 100


def results_of(query: str, hits: Sequence[Hit], language: str) -> list[Result]:
    """Return hits as results.

    Args:
        query: question as typed.
        hits: best first.
        language: as in `search.language`.
    """
    citations = cite(query, hits, language).citations
    return [_result(query, hit, each, language) for hit, each in zip(hits, citations, strict=True)]


def _result(query: str, hit: Hit, citation: Citation, language: str) -> Result:
    row: Any = hit.row
    start, end = (place - row["start"] for place in citation.snippet_span)
    shown = columns(citation.snippet) if citation.header else extract(str(row["text"]), (start, end))
    return Result(
        document_id=row["document_id"],
        chunk_id=row["chunk_id"],
        chunk_index=row["chunk_index"],
        title=row["title"] or row["filename"] or "Untitled",
        filename=row["filename"] or "",
        place=f"{row['kind']} {row['page']}" if row["page"] is not None and row["kind"] != "document" else "",
        headings=headings_of(list(row["headings"] or ())),
        namespace=row["namespace"],
        source=row["source"],
        percent=None if hit.relevance is None else round(hit.relevance * 100),
        table=columns(citation.header) if citation.header else "",
        lines=tuple(marked(shown, query, language)),
        also_in=len(hit.also_in),
    )
