"""Citations: location and snippet of each result, and markers to use in an answer. Pure."""

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
    """Citation of one result."""

    marker: str
    """`[1]`; results from the same document and place share a marker"""
    source: str
    """source name in the settings"""
    uri: str
    """for a video, the URL at the moment the snippet is spoken"""
    kind: str
    """unit of `page`: `page`, `sheet`, `slide`, `chapter`; `document` if there is none"""
    page: int | None
    """1-based"""
    span: Span
    """character span of the chunk in the document's text"""
    snippet: str
    """the sentence nearest to the query, verbatim"""
    snippet_span: Span
    """character span of the snippet in the document's text"""
    header: str | None = None
    """column names of the table if the snippet is one of its rows, verbatim"""
    header_span: Span | None = None
    """character span of the header in the document's text"""

    def as_json(self) -> dict[str, Any]:
        """Return the value of `citation` in a result of `parquetry search --citations --json`."""
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
    """Entry of the bibliography."""

    marker: str
    title: str
    place: str
    """`leave.pdf, page 3, Parental leave`"""
    uri: str

    @property
    def line(self) -> str:
        """The entry as printed."""
        title = f"{self.title} ({self.place})" if self.title else self.place
        return f"{self.marker} {title}. {self.uri}"

    def as_json(self) -> dict[str, str]:
        """Return one item of `bibliography` in `parquetry search --citations --json`."""
        return {
            "marker": self.marker,
            "title": self.title,
            "place": self.place,
            "uri": self.uri,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class Cited:
    """Citations and bibliography of an answer."""

    citations: tuple[Citation, ...]
    """one citation per hit, in hit order"""
    bibliography: tuple[Reference, ...]
    """one reference per marker, in marker order"""


def cite(query: str, hits: Sequence[Hit], language: str) -> Cited:
    """Cite search hits.

    Args:
        query: query as typed; determines which sentence is quoted.
        hits: hits, best first.
        language: stemmer language, as in `search.language`.
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
    """Return a video's URL at the moment the cited text is spoken; any other URI unchanged.

    Args:
        uri: URI of the document.
        text: text of the chunk, up to the end of the cited part.
        headings: headings above the start of the chunk.
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
    """Describe where a chunk is: `leave.pdf, page 3, Parental leave > Money`, or `lesson, learned from 2 sessions`."""
    if row["media_type"] == ENTRY_TYPE:
        return _of_entry(json.loads(row["metadata"]))
    headings = list(row["headings"] or ())
    parts = [str(row["filename"])]
    if row["page"] is not None and row["kind"] != "document":
        parts.append(f"{row['kind']} {row['page']}")
    if headings:
        parts.append(" > ".join(headings[-2:]))
    return ", ".join(parts)
