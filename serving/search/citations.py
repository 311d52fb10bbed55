"""Citations: where each result stands, what it says there, and markers to write into an answer. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.model import ENTRY_TYPE
from parquetry.plural import counted
from parquetry.serving.search.snippets import LONGEST_ROW, snippets
from parquetry.serving.search.tables import Span
from parquetry.storage.search.searcher import Hit
from parquetry.timecodes import seconds_of

_VIDEO = "https://www.youtube.com/watch?v="
_HEADING = re.compile(r"^## ([\d:]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Citation:
    """How one result is cited."""

    marker: str
    """`[1]`; results of one document and place share it"""
    source: str
    """name in the settings"""
    uri: str
    """of a video: at the moment when the snippet is said"""
    kind: str
    """what `page` counts: `page`, `sheet`, `slide`, `chapter`; `document` for nothing"""
    page: int | None
    """1-based"""
    span: Span
    """of the chunk in the document's text, in characters"""
    snippet: str
    """the sentence that is nearest to the query, as it stands in the text"""
    snippet_span: Span
    """of the snippet in the document's text, in characters"""
    header: str | None = None
    """column names of the table whose row the snippet is, as they stand in the text"""
    header_span: Span | None = None
    """of these in the document's text, in characters"""

    def as_json(self) -> dict[str, Any]:
        """The value of `citation` in a result of `parquetry search --citations --json`."""
        return {
            "marker": self.marker,
            "source": self.source,
            "uri": self.uri,
            "kind": self.kind,
            "page": self.page,
            "span": list(self.span),
            "snippet": self.snippet,
            "snippet_span": list(self.snippet_span),
            "header": self.header,
            "header_span": None if self.header_span is None else list(self.header_span),
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """One entry of the bibliography."""

    marker: str
    title: str
    place: str
    """`leave.pdf, page 3, Parental leave`"""
    uri: str

    @property
    def line(self) -> str:
        """The entry as it is printed."""
        title = f"{self.title} ({self.place})" if self.title else self.place
        return f"{self.marker} {title}. {self.uri}"

    def as_json(self) -> dict[str, str]:
        """One of `bibliography` in `parquetry search --citations --json`."""
        return {
            "marker": self.marker,
            "title": self.title,
            "place": self.place,
            "uri": self.uri,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class Cited:
    """The citations of an answer."""

    citations: tuple[Citation, ...]
    """one for each hit, in their order"""
    bibliography: tuple[Reference, ...]
    """one for each marker, in the order of the markers"""


def cite(query: str, hits: Sequence[Hit], language: str) -> Cited:
    """Cite what was found.

    Args:
        query: as typed; it decides which sentence is quoted.
        hits: best first.
        language: of the stemmer, as `search.language`.
    """
    texts = [str(hit.row["text"]) for hit in hits]
    quotations = snippets(query, texts, [hit.row["headings"] or () for hit in hits], language)
    references: dict[tuple[str, str], Reference] = {}
    citations = []
    for hit, text, quotation in zip(hits, texts, quotations, strict=True):
        row, where = hit.row, place(hit.row)
        start, end = quotation.span
        header = quotation.header and (quotation.header[0], min(quotation.header[1], quotation.header[0] + LONGEST_ROW))
        key = (row["document_id"], where)
        uri = at_moment(row["uri"], text[:end], row["headings"] or ())
        if key not in references:
            references[key] = Reference(f"[{len(references) + 1}]", row["title"] or "", where, uri)
        citations.append(
            Citation(
                marker=references[key].marker,
                source=row["source"],
                uri=uri,
                kind=row["kind"],
                page=row["page"],
                span=(row["start"], row["end"]),
                snippet=text[start:end],
                snippet_span=(row["start"] + start, row["start"] + end),
                header=header and text[slice(*header)],
                header_span=header and (row["start"] + header[0], row["start"] + header[1]),
            )
        )
    return Cited(tuple(citations), tuple(references.values()))


def at_moment(uri: str, text: str, headings: Sequence[str]) -> str:
    """The URL of a video at the moment when something is said in it; any other URI as it is.

    Args:
        uri: of the document.
        text: of the chunk, up to the end of what is cited.
        headings: that the chunk's start stands under.
    """
    if not uri.startswith(_VIDEO):
        return uri
    named = [*headings[-1:], *_HEADING.findall(text)]
    moments = [seconds for each in named if (seconds := seconds_of(each)) is not None]
    return f"{uri}&t={moments[-1]}s" if moments else uri


def _of_entry(told: Mapping[str, Any]) -> str:
    sessions = told["sessions"]
    learned = f"learned from {counted(sessions, 'session')}"
    disputed = ", contradicted" if told.get("contradicts") else ""
    return f"{told['kind']}, {learned}{disputed}"


def place(row: Mapping[str, Any]) -> str:
    """Where a chunk stands: `leave.pdf, page 3, Parental leave > Money`; `lesson, learned from 2 sessions`."""
    if row["media_type"] == ENTRY_TYPE:
        return _of_entry(json.loads(row["metadata"]))
    headings = list(row["headings"] or ())
    parts = [str(row["filename"])]
    if row["page"] is not None and row["kind"] != "document":
        parts.append(f"{row['kind']} {row['page']}")
    if headings:
        parts.append(" > ".join(headings[-2:]))
    return ", ".join(parts)
