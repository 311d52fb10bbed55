"""The record types of each stage, from a listed file to a row of the corpus.

One frozen type per stage; nothing is optional because a later stage fills it. Offsets are 0-based counts of Unicode
code points; an `end` is one past the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Scalar = str | int | float | bool
Visibility = Literal["public", "organization", "individual"]
PartKind = Literal["document", "page", "sheet", "slide", "chapter"]
TextFormat = Literal["markdown", "text", "table", "code"]
Status = Literal["indexed", "failed", "skipped"]

ENTRY_TYPE = "application/vnd.parquetry.entry"
"""media type of a row of `documents` that is a piece of knowledge"""
SESSION_TYPE = "application/vnd.parquetry.session"
"""media type of a row of `documents` that is a chat session which was read"""
TRANSCRIPTS_TYPE = "application/vnd.parquetry.transcripts"
"""media type of a row of `documents` that is a file of chat sessions"""
KNOWLEDGE_TYPES = (ENTRY_TYPE, SESSION_TYPE, TRANSCRIPTS_TYPE)
"""media types of rows that are no documents"""
What = Literal["documents", "entries", "both"]
"""of what holds text: documents, pieces of knowledge from chat sessions, or both"""


# --- scan


@dataclass(frozen=True, slots=True)
class Access:
    """Who may see a document, and how it is labelled."""

    visibility: Visibility = "public"
    org_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One file or object as a source lists it, before anything of it is read."""

    path: str
    """place within the source, with `/` between the parts; never mapped onto a local path by anyone but the source"""
    uri: str
    """where people and programs find it"""
    size: int
    """bytes"""
    etag: str
    """change token: differs whenever the content may differ"""
    modified_at: datetime
    """UTC"""
    access: Access


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A place that a source could not list or read the properties of."""

    path: str
    """place within the source; empty for the source as a whole"""
    detail: str


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """Why a listing ended before it was complete, or never began."""

    reason: str
    """short code in kebab-case"""
    detail: str
    """one sentence for a person"""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Documents that a source holds and leaves to a source inside it."""

    path: str
    """of the inner source within the outer one; empty if both have one place"""
    source: str
    """the inner one"""
    documents: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that one source holds below `prefix`, or as much of it as could be seen."""

    source: str
    namespace: str
    prefix: str
    """only paths that start with this were asked for; empty for the whole source"""
    items: tuple[Item, ...]
    unlisted: tuple[Unlisted, ...] = ()
    """what could not be seen; while there is any, nothing of this source may be removed"""
    broken: BrokenOff | None = None
    """set if the listing broke off; then nothing of this source may be removed either"""
    settled: int = 0
    """documents besides `items` that were listed as they are published and need nothing"""
    left_out: tuple[LeftOut, ...] = ()
    """documents besides these that belong to other sources"""

    @property
    def complete(self) -> bool:
        return not self.unlisted and self.broken is None


# --- extract


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A fetched document, in memory."""

    content: bytes
    filename: str
    """last part of the path, for its extension and as the title of last resort"""


@dataclass(frozen=True, slots=True)
class Part:
    """A page, sheet, slide or chapter of a text. The parts of a text do not overlap and stand in order."""

    start: int
    """0-based"""
    end: int
    """one past the end"""
    kind: PartKind
    number: int
    """1-based"""
    name: str | None
    """the sheet's, slide's or chapter's own name"""
    format: TextFormat
    """how the text is to be split"""
    language: str | None = None
    """of code: the name of its grammar (`python`, `rust`, ...)"""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a text."""

    start: int
    """0-based offset of the line it stands on, markup included"""
    level: int
    """1 for the outermost"""
    title: str
    """without markup"""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The normalised text of a document and where everything in it is."""

    text: str
    """NFC, line feeds only, no control characters but tab and line feed"""
    parts: tuple[Part, ...]
    headings: tuple[Heading, ...]
    title: str | None
    metadata: Mapping[str, Scalar]
    """what the format itself tells: author, created, language, ..."""
    media_type: str
    extractor: str
    """name/version of the extractor"""
    warnings: tuple[str, ...] = ()
    """what was worked around, one sentence each: `page 3 has no text layer`"""


# --- chunk


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document's text: `text[start:end]` is the chunk."""

    index: int
    """0-based within the document"""
    start: int
    """0-based"""
    end: int
    """one past the end"""
    kind: PartKind
    """what `page` counts"""
    page: int | None
    """1-based number of the page, sheet, slide or chapter; None where the format has none"""
    headings: tuple[str, ...]
    """titles from the outermost heading to the innermost that the chunk's start stands under"""


# --- state


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One row of the table `documents`: a document as of one publish."""

    document_id: str
    namespace: str
    source: str
    path: str
    uri: str
    filename: str
    title: str | None
    media_type: str | None
    size: int
    """bytes"""
    etag: str
    modified_at: datetime
    """UTC"""
    content_hash: str
    """of the bytes last processed, whether or not that went well; empty if they were never read"""
    revision: int
    """the revision whose chunks are visible; 0 for none"""
    sequence: int
    """number of the publish within the namespace; the highest one is current"""
    removed: bool
    fingerprint: str
    """extraction-chunking-embedding settings that shaped the last processing"""
    status: Status
    """of the last processing; a failed document keeps the revision that it had"""
    error: str | None
    """`stage/reason: detail` of a failed or skipped document"""
    attempts: int
    """how often processing this content with these settings has failed in a row"""
    transient: bool
    """whether a failure may go away by itself: the next run tries again"""
    extractor: str | None
    embedder: str | None
    pages: int
    characters: int
    chunks: int
    tokens: int
    access: Access
    metadata: Mapping[str, Scalar]
    uploaded_by: str | None
    created_at: datetime
    """UTC, when the document was first published"""
    indexed_at: datetime
    """UTC, when this row was written"""
    run_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was worked around in a document, which is indexed all the same."""

    revision: int
    """of the document, that was made with it"""
    uri: str
    stage: str
    """extract or embed"""
    text: str
    """one sentence for a person"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that was skipped or that failed, or a source whose listing broke off, and why."""

    document_id: str
    """empty for a source"""
    namespace: str
    source: str
    uri: str
    status: Literal["failed", "skipped"]
    stage: str
    """scan (of a source), fetch, extract, chunk, embed or store"""
    reason: str
    """short code in kebab-case"""
    detail: str
    attempts: int
    run_id: str
    known: bool = field(default=False)
    """True if this is an earlier failure of an unchanged document that was not tried again"""
