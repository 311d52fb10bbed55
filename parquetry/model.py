"""The record types of each stage, from a listed file to a row of the corpus.

One frozen type per stage; nothing is optional because a later stage fills it. Offsets are 0-based counts of Unicode
code points; an `end` is one past the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Literal

Scalar = str | int | float | bool
Visibility = Literal["public", "organization", "individual"]
PartKind = Literal["document", "page", "sheet", "slide", "chapter"]
TextFormat = Literal["markdown", "text", "table", "code"]
Status = Literal["indexed", "failed", "skipped"]

ENTRY_TYPE = "application/vnd.parquetry.entry"
"""media type of a row of `documents` for a knowledge entry"""
SESSION_TYPE = "application/vnd.parquetry.session"
"""media type of a row of `documents` for a chat session that was read"""
TRANSCRIPTS_TYPE = "application/vnd.parquetry.transcripts"
"""media type of a row of `documents` for a file of chat sessions"""
KNOWLEDGE_TYPES = (ENTRY_TYPE, SESSION_TYPE, TRANSCRIPTS_TYPE)
"""media types of rows that are not documents"""
What = Literal["documents", "entries", "both"]
"""types of text: documents, knowledge entries from chat sessions, or both"""


# --- scan


@dataclass(frozen=True, slots=True)
class Access:
    """Audience and labels of a document."""

    visibility: Visibility = "public"
    org_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Size of the chunks of one document, instead of that in the settings."""

    tokens: int
    """largest chunk, in tokens"""
    overlap: int
    """tokens repeated between neighbours; less than `tokens`"""


@dataclass(frozen=True, slots=True)
class Submission:
    """Particulars of a document that was handed in, besides its bytes."""

    filename: str
    """name that people see and that the type is detected by"""
    content_type: str | None
    """media type as declared; it decides where the filename has no known extension"""
    metadata: Mapping[str, Any]
    """JSON values; they win over the document's own"""
    uploaded_by: str | None
    created_at: datetime
    """UTC, when it was handed in first"""
    chunk_size: ChunkSize | None = None
    """None for the size in the settings"""
    describe: bool | None = None
    """True to have a picture described by the language model; None for the choice of the settings"""


@dataclass(frozen=True, slots=True)
class Item:
    """One file or object as listed by a source, before it is read."""

    path: str
    """place within the source, with `/` between the parts; only the source itself maps it onto a local path"""
    uri: str
    """location for people and programs"""
    size: int
    """bytes"""
    etag: str
    """change token: differs whenever the content may differ"""
    modified_at: datetime
    """UTC"""
    access: Access
    submission: Submission | None = field(default=None, hash=False)
    """None for everything that was not handed in"""

    @property
    def filename(self) -> str:
        """Name that people see: the last part of the path, or the name that it was handed in under."""
        return PurePosixPath(self.path).name if self.submission is None else self.submission.filename

    @property
    def chunk_size(self) -> ChunkSize | None:
        """Size of its chunks; None for the size in the settings."""
        return None if self.submission is None else self.submission.chunk_size

    @property
    def describe(self) -> bool | None:
        """True to have a picture described; None for the choice of the settings."""
        return None if self.submission is None else self.submission.describe


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Place that a source could not list, or whose properties it could not read."""

    path: str
    """place within the source; empty for the source as a whole"""
    detail: str


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """Reason for a listing that ended early or never began."""

    reason: str
    """short code in kebab-case"""
    detail: str
    """one sentence for people"""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Documents of a source that belong to a source inside it."""

    path: str
    """path of the inner source within the outer one; empty if both have one place"""
    source: str
    """name of the inner source"""
    documents: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that one source holds below `prefix`, or the visible part."""

    source: str
    namespace: str
    prefix: str
    """only paths with this prefix were listed; empty for the whole source"""
    items: Sequence[Item]
    """each once; may be in a file, from which they are read again each time"""
    unlisted: tuple[Unlisted, ...] = ()
    """places that could not be read; while there are any, nothing of this source may be removed"""
    broken: BrokenOff | None = None
    """set if the listing broke off; then nothing of this source may be removed either"""
    unchanged: int = 0
    """documents besides `items` that are unchanged since they were published"""
    left_out: tuple[LeftOut, ...] = ()
    """documents besides these that belong to other sources"""
    paths: frozenset[str] = frozenset()
    """only these paths were listed, if there are any"""
    removes: bool = True
    """False to keep documents that were not listed, although the listing is complete"""

    @property
    def shows_removals(self) -> bool:
        """True if documents that were not listed are gone."""
        return self.complete and self.removes

    @property
    def complete(self) -> bool:
        return not self.unlisted and self.broken is None


# --- extract


@dataclass(frozen=True, slots=True)
class RawDocument:
    """Fetched document, in memory."""

    content: bytes
    filename: str
    """last part of the path, for its extension and as the title of last resort"""


@dataclass(frozen=True, slots=True)
class Part:
    """Page, sheet, slide or chapter of a text. The parts of a text do not overlap and are in order."""

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
    """method of splitting the text"""
    language: str | None = None
    """for code, the name of its grammar (`python`, `rust`, ...)"""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a text."""

    start: int
    """0-based offset of its line, markup included"""
    level: int
    """1 for the outermost"""
    title: str
    """without markup"""


@dataclass(frozen=True, slots=True)
class Quality:
    """Facts on the reading of a document; None stands for what is unknown, never for none."""

    pages: int | None = None
    """pages or slides, including those without text"""
    without_text: tuple[int, ...] | None = None
    """1-based numbers of the pages without text, blank ones included"""
    unread: tuple[int, ...] | None = None
    """1-based numbers of the pages that show something of which not everything could be read"""
    least: int | None = None
    """characters of the page with the fewest, 0 for one without text"""
    median: float | None = None
    """characters of a page"""
    ocr: tuple[tuple[int, float], ...] | None = None
    """1-based numbers of the pages read by OCR, with the confidence of the engine, 0 to 1"""
    ocr_confidence: float | None = None
    """mean confidence of those pages, weighted by their characters; 0 to 1"""
    unmapped: int | None = None
    """characters that stand for nothing: glyphs without a character in a PDF (a lower bound, from samples of each
    page), U+FFFD, and those for private use"""
    tables: int | None = None
    """tables written as tables"""
    cut: int | None = None
    """characters left out because of the limit on a document's text"""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Normalised text of a document with the positions of its parts and headings."""

    text: str
    """NFC, line feeds only, no control characters but tab and line feed"""
    parts: tuple[Part, ...]
    headings: tuple[Heading, ...]
    title: str | None
    metadata: Mapping[str, Scalar]
    """metadata in the document itself: author, created, language, ..."""
    media_type: str
    extractor: str
    """name/version of the extractor"""
    warnings: tuple[str, ...] = ()
    """workarounds, one sentence each: `page 3 has no text layer`"""
    quality: Quality | None = None
    """None for a text that was stored without"""


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
    """unit of `page`"""
    page: int | None
    """1-based number of the page, sheet, slide or chapter; None if the format has none"""
    headings: tuple[str, ...]
    """titles of the headings above the chunk's start, outermost first; for a chunk that begins inside a table, then one
    line with the caption, the unit and the column names that stand above its rows"""


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
    """hash of the bytes last processed, successfully or not; empty if they were never read"""
    revision: int
    """revision with the visible chunks; 0 for none"""
    sequence: int
    """number of the publish within the namespace; the highest one is current"""
    removed: bool
    fingerprint: str
    """extraction-chunking-embedding settings of the last processing"""
    status: Status
    """status of the last processing; a failed document keeps its earlier revision"""
    error: str | None
    """`stage/reason: detail` of a failed or skipped document"""
    attempts: int
    """consecutive failures to process this content with these settings"""
    transient: bool
    """True if a failure may resolve by itself: the next run tries again"""
    extractor: str | None
    embedder: str | None
    pages: int
    characters: int
    chunks: int
    tokens: int
    access: Access
    metadata: Mapping[str, Any]
    """JSON values: what the document itself says, and over it what was handed in with it"""
    uploaded_by: str | None
    """user who handed it in; None for other sources"""
    created_at: datetime
    """UTC, when the document was first published; of an upload, when it was handed in first"""
    indexed_at: datetime
    """UTC, when this row was written"""
    run_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """Workaround in a document, which is indexed all the same."""

    revision: int
    """revision of the document that was made with it"""
    uri: str
    stage: str
    """extract or embed"""
    text: str
    """one sentence for people"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Skipped or failed document, or source with a broken listing, with the reason."""

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
