"""Documents as pages show them: rows of a list, and one document with the spans of its chunks marked in its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from parquetry.reasons import REASONS
from parquetry.serving.service.documents import origin_of, url_of
from parquetry.serving.web.repairs import repair_of
from parquetry.sources.uploads.identity import UPLOADS

CHUNKS_SHOWN = 40
"""chunks of a document on one page"""
PAGES_DRAWN = 8
"""pages of a chunk that are drawn beside it"""
_TYPES: Mapping[str, str] = {
    "application/pdf": "PDF",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
    "application/msword": "Word 97",
    "application/vnd.ms-excel": "Excel 97",
    "application/vnd.ms-powerpoint": "PowerPoint 97",
    "application/vnd.ms-outlook": "Outlook",
    "application/vnd.oasis.opendocument.text": "OpenDocument",
    "application/vnd.oasis.opendocument.spreadsheet": "OpenDocument sheet",
    "application/vnd.oasis.opendocument.presentation": "OpenDocument slides",
    "application/epub+zip": "EPUB",
    "application/json": "JSON",
    "application/rtf": "RTF",
    "message/rfc822": "Mail",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/plain": "Text",
    "text/csv": "CSV",
    "text/xml": "XML",
    "application/xml": "XML",
}
"""names that people use for media types"""
_WIDEST_GAP = 8
"""characters between two chunks that are taken for line ends"""
_SOURCES = {"upload": "Upload", "url": "URL", "youtube": "YouTube"}


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """The reason for which a document is not searchable."""

    stage: str
    reason: str
    """code"""
    explanation: str
    """one line; empty for an unknown code"""
    detail: str
    """message of the run: what was wrong, and where"""
    repair: str
    """a sentence on what to do"""


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document in a list."""

    id: str
    name: str
    title: str
    """empty if the name says as much"""
    namespace: str
    source: str
    badge: str
    """`Upload`, `URL`, `YouTube`, or the name of its source"""
    kind: str
    """its type, as people call it"""
    size: int
    """bytes"""
    chunks: int
    status: str
    failure: ShownFailure | None
    added_at: datetime
    modified_at: datetime | None
    indexed_at: datetime | None
    url: str | None
    path: str
    visibility: str
    tags: tuple[str, ...]


def item_of(row: Mapping[str, Any]) -> ListedDocument:
    """Return a row of the view `published` as an item of a list."""
    name = row["filename"] or row["title"] or "Untitled"
    title = row["title"] or ""
    origin = origin_of(row)
    return ListedDocument(
        id=row["document_id"],
        name=name,
        title="" if title in (name, name.rpartition(".")[0]) else title,
        namespace=row["namespace"],
        source=row["source"],
        badge=_SOURCES.get(origin, origin),
        kind=kind_of(row["media_type"]),
        size=row["size"] or 0,
        chunks=row["chunks"] or 0,
        status=row["status"],
        failure=failure_of(row["error"], uploaded=row["source"] == UPLOADS) if row["status"] != "indexed" else None,
        added_at=row["created_at"],
        modified_at=row["modified_at"],
        indexed_at=row["indexed_at"],
        url=url_of(row),
        path=row["path"],
        visibility=row["visibility"],
        tags=tuple(row["tags"] or ()),
    )


def kind_of(media_type: str | None) -> str:
    """Return the name that people use for a media type."""
    if not media_type:
        return "Unknown"
    plain = media_type.partition(";")[0].strip()
    group, _, name = plain.rpartition("/")
    return _TYPES.get(plain) or (name.upper() if group == "image" else name.removeprefix("x-"))


def failure_of(error: str | None, *, uploaded: bool = False) -> ShownFailure:
    """Return the failure that a row states as `stage/reason: detail`.

    Args:
        error: the statement.
        uploaded: True for a document that was handed in.
    """
    code, _, detail = (error or "").partition(": ")
    stage, _, reason = code.rpartition("/")
    return failure(stage, reason, detail, uploaded=uploaded)


def failure(stage: str, reason: str, detail: str, *, uploaded: bool) -> ShownFailure:
    """Return a failure with the explanation of its reason, and what to do."""
    return ShownFailure(stage, reason, REASONS.get(reason, ""), detail, repair_of(reason, uploaded=uploaded))


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a text that belongs to the same chunks throughout."""

    text: str
    """without empty lines around it"""
    begins: tuple[int, ...]
    """0-based numbers of the chunks that begin here"""
    tint: str
    """`even` or `odd` by the number of its chunk, `shared` where chunks overlap, `none` outside all of them"""
    chosen: bool
    """True within the chunk that was asked for"""


def segments(text: str, chunks: Sequence[Mapping[str, Any]], chosen: int | None) -> list[Segment]:
    """Return the part of a text that consecutive chunks cover, in pieces, in order. Pure.

    Args:
        text: text of the document.
        chunks: chunks with `chunk_index`, `start` and `end`, by position.
        chosen: number of the chunk that was asked for.
    """
    if not chunks:
        return []
    bounds = sorted({place for each in chunks for place in (each["start"], each["end"])})
    opened: dict[int, list[Mapping[str, Any]]] = {}
    for each in chunks:
        opened.setdefault(each["start"], []).append(each)
    found, holding = [], list[Mapping[str, Any]]()
    for start, end in pairwise(bounds):
        begins = opened.get(start, [])
        holding = [each for each in holding if each["end"] > start] + begins
        numbers = [each["chunk_index"] for each in holding]
        piece = text[start:end].strip("\n")
        if not piece.strip() and not begins:
            continue
        found.append(
            Segment(
                piece,
                tuple(each["chunk_index"] for each in begins),
                _tint(numbers),
                chosen in numbers,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class DrawnPages:
    """Pages of a document to be drawn beside its text."""

    numbers: tuple[int, ...]
    """1-based, in order"""
    chunk: int | None
    """number of the chunk to be outlined"""
    left_out: int
    """further pages on which the chunk stands"""


def drawn_pages(chunks: Sequence[Mapping[str, Any]], chosen: int | None, pages: Sequence[int]) -> DrawnPages:
    """Return the pages on which the chosen chunk stands; without one, the page on which the first begins. Pure.

    Args:
        chunks: chunks with `page`, by position.
        chosen: number of the chunk that was asked for.
        pages: pages of the chosen chunk, in order; empty if there is no such chunk.
    """
    if pages:
        return DrawnPages(tuple(pages[:PAGES_DRAWN]), chosen, max(0, len(pages) - PAGES_DRAWN))
    return DrawnPages(((chunks[0]["page"] if chunks else None) or 1,), None, 0)


def text_of_chunks(chunks: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a text that has the texts of some chunks at their spans, and blanks elsewhere. Pure.

    Reading the stored text takes many times longer, because it lies outside the index.

    Args:
        chunks: chunks with `start`, `end` and `text`, by position.

    Returns:
        The text; None if a chunk says something else than its span, or the spans leave something out.
    """
    pieces: list[str] = []
    at = 0
    for each in chunks:
        start, end, text = each["start"], each["end"], each["text"]
        if len(text) != end - start or start < 0 or (pieces and start > at + _WIDEST_GAP):
            return None
        if start > at:
            pieces.append("\n" * (start - at))
        pieces.append(text[max(0, at - start) :])
        at = max(at, end)
    return "".join(pieces)


def _tint(numbers: Sequence[int]) -> str:
    if not numbers:
        return "none"
    if len(numbers) > 1:
        return "shared"
    return "odd" if numbers[0] % 2 else "even"
