"""PDF, page by page: PDFium first, pypdf if PDFium fails, OCR for pages without a text layer."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import ocr
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.layout import (
    HYPHEN_MARK,
    Bookmark,
    Line,
    body_size,
    first_title,
    join_divided,
    large_lines,
    paragraphs,
    place_bookmarks,
    starts_of_lines,
    words_of,
)
from parquetry.extract.pdf import attachments as pdf_attachments
from parquetry.extract.pdf import engine as pdf_engine
from parquetry.extract.pdf import metadata as pdf_metadata
from parquetry.extract.pdf.reading import Reading, page_facts, warnings_of, why_no_text
from parquetry.extract.pdf.running_heads import without_running_heads
from parquetry.extract.pdf.weight import Weights
from parquetry.extract.titles import useful_title
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_CHARACTERS_PER_BYTE = 8
"""maximum characters of all pages per byte of the file, because the same page may be listed any number of times; the
maximum in 179 genuine documents is 0.6"""
_FREE_CHARACTERS = 100_000
"""characters allowed for any document"""
_PUBLIC_KEY = re.compile(rb"/adbe\.pkcs7\.s[345]\b|/Filter\s*/(?:Adobe\.PubSec|Entrust\.PPKEF)\b")
"""sign of encryption for certificates (ISO 32000-1, 7.6.4) in its dictionary, which is never compressed"""


class PdfExtractor(ListedExtractor):
    """Reads the text of PDF files, with a part for each page and the outline as headings."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one PDF.

        Raises:
            SkippedDocument: `no-text`: the document is a scan, and OCR is off, not installed or found nothing.
            BrokenDocument: `encrypted`: no password opens it; `damaged`: neither engine can read it.
        """
        reading = Reading()
        if not _read_with_pdfium(document, settings, reading):
            _read_with_pypdf(document, settings, reading)
        return self._build(reading, media_type, settings)

    def _build(self, reading: Reading, media_type: str, settings: ExtractionSettings) -> Extraction:
        title = _title(reading)
        titles = [bookmark.title for entries in reading.bookmarks.values() for bookmark in entries]
        pages = without_running_heads(reading.pages, [title or "", *titles])
        reading.tables.write(pages, reading.pages)
        raw = [paragraphs(lines) for lines in pages]
        words = words_of(raw) if any(HYPHEN_MARK in text for text in raw) else frozenset[str]()
        sizes = large_lines(pages) if not reading.bookmarks else None
        builder = TextBuilder("text")
        for index, lines in enumerate(pages):
            text = join_divided(raw[index], words)
            bookmarks = reading.bookmarks.get(index, [])
            if sizes:
                bookmarks = [Bookmark(level, title, lines[first].top) for first, level, title in sizes[index]]
            if bookmarks:
                text = normalise(text).strip()
            tabular = any(line.block is not None for line in lines)
            builder.part("page", index + 1, format="markdown" if tabular else "text")
            start = builder.text(text)
            if start is None or not bookmarks:
                continue
            for offset, bookmark in place_bookmarks(text, starts_of_lines(lines), bookmarks):
                builder.mark_heading(start + offset, bookmark.level, " ".join(normalise(bookmark.title).split()))
        extraction = builder.build(
            title=title,
            metadata=pdf_metadata.of(reading.information, len(reading.pages), reading.language),
            media_type=media_type,
            extractor=self.id,
            warnings=warnings_of(reading),
            pages=page_facts(reading),
        )
        attached = pdf_attachments.note(reading.attached)
        if not extraction.text and reading.heavy:
            raise BrokenDocument("too-large", "its pages draw more than its size allows")
        if not extraction.text and reading.damaged:
            raise BrokenDocument("damaged", "no page of it can be read")
        if not extraction.text:
            raise SkippedDocument("no-text", "; ".join([why_no_text(reading, settings), *attached]))
        return extraction


# --- reading


def _read_with_pdfium(document: RawDocument, settings: ExtractionSettings, reading: Reading) -> bool:
    """Read everything that PDFium can; return False if it cannot open the document or finds no page."""
    from pypdfium2 import PdfiumError

    opened = _open_with_pdfium(document, settings)
    if opened is None:
        return False
    deadline = time.monotonic() + ocr.TIME_SHARE * settings.timeout_seconds
    second = _PypdfPages(document, settings)
    with closing(opened), _quiet():
        count = reading.count = len(opened)
        fillable = pdf_engine.has_form(opened)
        reading.attached += pdf_attachments.of_document(opened)
        left = _FREE_CHARACTERS + _CHARACTERS_PER_BYTE * len(document.content)
        for index in range(count):
            left -= sum(len(line.text) for line in reading.pages[-1]) if index else 0
            if left < 0:
                reading.warnings.append(f"pages after {index} were not read: they say more than their size allows")
                break
            if not second.allows_next():
                reading.pages.append([])
                reading.heavy.append(index + 1)
                continue
            try:
                page = opened[index]
                if second.may_attach:
                    # PDFium would keep every annotation that it is asked for: 100 MB for the index of a manual.
                    reading.attached += pdf_attachments.of_page(page)
                if fillable:
                    page = pdf_engine.flattened(opened, index, page)
            except PdfiumError:
                reading.pages.append(second.lines(index))
                if not reading.pages[-1]:
                    reading.damaged.append(index + 1)
                continue
            try:
                reading.pages.append(_page(page, index + 1, settings, deadline, reading))
            except PdfiumError:
                reading.pages.append([])
                reading.damaged.append(index + 1)
            finally:
                page.close()
        reading.information = opened.get_metadata_dict(skip_empty=True)
        reading.language = pdf_engine.language(opened)
        for index, bookmark in pdf_engine.bookmarks(opened):
            reading.bookmarks[index].append(bookmark)
    return count > 0


def _open_with_pdfium(document: RawDocument, settings: ExtractionSettings) -> Any:
    """Open the document with the first password that fits; return None if PDFium cannot read it."""
    from pypdfium2 import PdfDocument, PdfiumError

    for password in _passwords(settings):
        try:
            return PdfDocument(document.content, password=password)
        except PdfiumError as error:
            if error.err_code != pdf_engine.PASSWORD_ERROR:
                return None
    # A file may look encrypted only to an engine that cannot parse it, so the second engine decides.
    return None


def _passwords(settings: ExtractionSettings) -> Iterator[str]:
    yield ""
    for password in settings.passwords:
        yield password.get_secret_value()


def _page(page: Any, number: int, settings: ExtractionSettings, deadline: float, reading: Reading) -> list[Line]:
    lines, unmapped = reading.tables.read_lines(page, number - 1)
    if pdf_engine.lacks_text(page, lines):
        recognised = _recognised(page, lines, number, settings, deadline, reading)
        if recognised is not None:
            return recognised
    if reading.unmapped is not None:
        reading.unmapped += unmapped
    return lines


def _recognised(
    page: Any, lines: list[Line], number: int, settings: ExtractionSettings, deadline: float, reading: Reading
) -> list[Line] | None:
    """Return the lines that OCR finds on a page; None if there are no more than its text layer has."""
    if not (settings.ocr and ocr.available()) or time.monotonic() > deadline:
        reading.unread.append(number)
        return None
    picture = pdf_engine.render(page)
    # In filings, many pages show a rule alone, for which the engine needs more time than for a page of text.
    read = [] if pdf_engine.has_no_text(picture) else ocr.read(picture)
    found = ocr.as_text_lines(read)
    if sum(len(line.text) for line in found) <= sum(len(line.text) for line in lines):
        reading.illegible += [] if lines else [number]
        return None
    reading.recognised[number] = ocr.confidence_of(read) or 0.0
    reading.warnings.append(f"page {number} has no text layer; its text is read by OCR")
    return found


class _PypdfPages:
    """The same document opened with pypdf, which measures what a page draws without drawing it; used while `_quiet`."""

    def __init__(self, document: RawDocument, settings: ExtractionSettings) -> None:
        self._reader: Any = None
        with _quiet(), suppress(BrokenDocument):
            self._reader = _open_with_pypdf(document, settings)
        self._weights = Weights(self._reader, _pypdf_errors(), len(document.content))

    def allows_next(self) -> bool:
        """Return True if the next page, from the first, draws no more than the document's size allows."""
        return self._weights.allows_next()

    @property
    def may_attach(self) -> bool:
        """False if no file is attached to the page that was allowed last."""
        return self._weights.may_attach

    def lines(self, index: int) -> list[Line]:
        """Return the lines of the page at a 0-based index; empty if pypdf cannot read it either."""
        return [] if self._reader is None else _pypdf_page(self._reader, index) or []


def _read_with_pypdf(document: RawDocument, settings: ExtractionSettings, reading: Reading) -> None:
    """Start over with pypdf, which is slower but repairs more.

    Raises:
        BrokenDocument: pypdf cannot read the document either.
    """
    with _quiet():
        reader = _open_with_pypdf(document, settings)
        try:
            count = reading.count = len(reader.pages)
            reading.unmapped = None
        except _pypdf_errors() as error:
            raise BrokenDocument("damaged", f"no page can be found in it: {error}") from error
        weights = Weights(reader, _pypdf_errors(), len(document.content))
        for index in range(count):
            if not weights.allows_next():
                reading.pages.append([])
                reading.heavy.append(index + 1)
                continue
            lines = _pypdf_page(reader, index)
            reading.pages.append(lines or [])
            if lines is None:
                reading.damaged.append(index + 1)
            elif not lines:
                reading.unread.append(index + 1)
        try:
            reading.information = {key.lstrip("/"): str(value) for key, value in (reader.metadata or {}).items()}
            _pypdf_outline(reader, reader.outline, 1, reading)
            reading.attached += (str(attached.name) for attached in reader.attachment_list)
        except _pypdf_errors() as error:
            reading.warnings.append(f"its outline or information could not be read: {error}")


def _open_with_pypdf(document: RawDocument, settings: ExtractionSettings) -> Any:
    from pypdf import PasswordType

    from parquetry.extract.pdf.packed_objects import OneByOneReader

    try:
        reader = OneByOneReader(document.content)
        if not reader.is_encrypted:
            return reader
        for password in _passwords(settings):
            if reader.decrypt(password) != PasswordType.NOT_DECRYPTED:
                return reader
    except NotImplementedError as error:
        # pypdf raises it for every encryption that is not by a password.
        raise BrokenDocument("encrypted", _why_locked(document.content)) from error
    except _pypdf_errors() as error:
        raise BrokenDocument("damaged", f"it cannot be opened as a PDF: {error}") from error
    tried = len(settings.passwords)
    hint = f"none of the {tried} in extraction.passwords opens it" if tried else "add it to extraction.passwords"
    raise BrokenDocument("encrypted", f"it needs a password; {hint}")


def _why_locked(content: bytes) -> str:
    if _PUBLIC_KEY.search(content):
        return "it is encrypted for the holders of certificates; one of them can save it without encryption"
    return "it is encrypted by a method that is not supported; save it without encryption"


def _pypdf_page(reader: Any, index: int) -> list[Line] | None:
    """Return the lines of the page at a 0-based index, without positions; None if it cannot be read."""
    try:
        text = reader.pages[index].extract_text()
    except _pypdf_errors():
        return None
    return [Line(line.strip(), 0, 0, 0, 0, 0) for line in text.split("\n") if line.strip()]


def _pypdf_outline(reader: Any, entries: Sequence[Any], level: int, reading: Reading) -> None:
    for entry in entries:
        if isinstance(entry, list):
            _pypdf_outline(reader, entry, level + 1, reading)
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0 and entry.title:
            reading.bookmarks[page].append(Bookmark(level, str(entry.title), None))


def _pypdf_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that pypdf raises on damaged input: its own and those of failed basic operations."""
    from pypdf.errors import DependencyError, PyPdfError

    return (
        PyPdfError, DependencyError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError,
        RecursionError, NotImplementedError, OverflowError, ZeroDivisionError, OSError, EOFError,
    )  # fmt: skip


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence pypdf, which logs everything that it repairs; only the result counts here."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


# --- title


def _title(reading: Reading) -> str | None:
    declared = useful_title(reading.information.get("Title"))
    if declared is not None:
        return declared
    outermost = [b for entries in reading.bookmarks.values() for b in entries if b.level == 1]
    if len(outermost) == 1 and outermost[0] in reading.bookmarks.get(0, []):
        return outermost[0].title
    return first_title(reading.pages[0], body_size(reading.pages)) if reading.pages else None
