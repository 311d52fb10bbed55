"""The content read from a PDF so far, and what is to be said about it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parquetry.extract import ocr
from parquetry.extract.layout import Bookmark, Line
from parquetry.extract.pdf import attachments as pdf_attachments
from parquetry.extract.pdf.ruled_tables import RuledTables
from parquetry.extract.quality import PageFacts
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


@dataclass(slots=True)
class Reading:
    """The content read from a document so far."""

    pages: list[list[Line]] = field(default_factory=list)
    """lines of each page, from the first"""
    information: dict[str, str] = field(default_factory=dict)
    """entries of the document information dictionary"""
    bookmarks: dict[int, list[Bookmark]] = field(default_factory=lambda: defaultdict(list))
    """0-based page -> its bookmarks, in outline order"""
    language: str | None = None
    warnings: list[str] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    """1-based numbers of pages without a text layer that were not read by OCR"""
    illegible: list[int] = field(default_factory=list)
    """1-based numbers of pages on which OCR found no text"""
    damaged: list[int] = field(default_factory=list)
    """1-based numbers of pages that neither engine could read"""
    heavy: list[int] = field(default_factory=list)
    """1-based numbers of pages that draw more than the size of the document allows"""
    count: int = 0
    """number of pages of the file"""
    recognised: dict[int, float] = field(default_factory=dict)
    """1-based number of each page read by OCR -> confidence, 0 to 1"""
    unmapped: int | None = 0
    """glyphs without a character; None if the engine does not tell"""
    attached: list[str] = field(default_factory=list)
    """names of attached files"""
    tables: RuledTables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = RuledTables(self.warnings)


def warnings_of(reading: Reading) -> list[str]:
    """Return what was worked around, one sentence each."""
    unread = [f"page {number} has no text layer" for number in reading.unread]
    illegible = [f"page {number} is a picture in which no text can be read" for number in reading.illegible]
    damaged = [f"page {number} is damaged" for number in reading.damaged]
    heavy = counted(len(reading.heavy), "page")
    too_heavy = [f"{heavy} not read: more is drawn on them than the size of the document allows"]
    return [
        *reading.warnings,
        *(too_heavy if reading.heavy else []),
        *unread,
        *illegible,
        *damaged,
        *pdf_attachments.note(reading.attached),
    ]


def page_facts(reading: Reading) -> PageFacts:
    """Return the facts about the pages that the text does not show."""
    not_reached = range(len(reading.pages) + 1, reading.count + 1)
    unread = [*reading.unread, *reading.illegible, *reading.damaged, *reading.heavy, *not_reached]
    by_pdfium = reading.unmapped is not None
    return PageFacts(
        reading.count,
        unread=unread,
        ocr=reading.recognised,
        unmapped=reading.unmapped,
        tables=reading.tables.written if by_pdfium else None,
    )


def why_no_text(reading: Reading, settings: ExtractionSettings) -> str:
    """Return the reason for a document without any text."""
    pages = len(reading.pages)
    if reading.illegible and not reading.unread:
        return "its pages are pictures in which no text can be read"
    if not reading.unread:
        return f"nothing is written on its {counted(pages, 'page')}"
    pictures = "its pages are pictures without a text layer"
    if not settings.ocr:
        return f"{pictures}; set extraction.ocr = true to read them"
    if not ocr.available():
        return f"{pictures}; to read them: pip install 'parquetry[ocr]'"
    return f"{pictures}, and there was no time to read one; raise extraction.timeout_seconds"
