"""The time limit of one document: far shorter for small files than for large ones, unless they may contain images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquetry.extract import media_types as kinds
from parquetry.extract.readers import ocr_available
from parquetry.model import RawDocument
from parquetry.plural import size_of

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

LEAST_SECONDS = 20
"""seconds for the smallest file; ordinary ones take a hundredth of that"""
SECONDS_PER_MB = 40
"""seconds for each megabyte: ten times those of the slowest ordinary documents, manuals in Word with many tables"""
USUAL_SECONDS = 120
"""seconds; `extraction.timeout_seconds` at which both values hold; a larger setting raises the limit of small files,
too"""

_MEGABYTE = 1_000_000
_HEAD_BYTES = 4096
_WITH_PICTURES = frozenset(
    {kinds.PDF, kinds.PNG, kinds.JPEG, kinds.WEBP, kinds.GIF, kinds.TIFF, kinds.HEIC, kinds.EMAIL}
)
_SIGNS_OF_PICTURES = (
    b"%PDF-",
    b"\x89PNG\r\n",
    b"\xff\xd8\xff",
    b"GIF8",
    b"WEBP",
    b"II*\0",
    b"MM\0*",
    b"ftyphei",
    b"ftypmif1",
    b"MIME-Version",
)


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The time limit of a document, and its reason."""

    seconds: float
    size: int | None = None
    """bytes of the document, if the limit follows from its size"""

    def __str__(self) -> str:
        if self.size is None:
            return f"took longer than {self.seconds:g} s (extraction.timeout_seconds)"
        share = f"the share of extraction.timeout_seconds for {size_of(self.size)}"
        return f"took longer than {self.seconds:.0f} s ({share})"


def time_limit(size: int, settings: ExtractionSettings) -> TimeLimit:
    """Return the limit for work whose time depends on size alone.

    Args:
        size: size in bytes.
        settings: give the full limit.
    """
    usual = LEAST_SECONDS + SECONDS_PER_MB * size / _MEGABYTE
    seconds = usual * max(1.0, settings.timeout_seconds / USUAL_SECONDS)
    return TimeLimit(seconds, size) if seconds < settings.timeout_seconds else TimeLimit(settings.timeout_seconds)


def time_limit_of(document: RawDocument, settings: ExtractionSettings) -> TimeLimit:
    """Return the limit for a document; one that may contain images has the full limit, since a page takes seconds."""
    if settings.ocr and ocr_available() and _may_hold_pictures(document):
        return TimeLimit(settings.timeout_seconds)
    return time_limit(len(document.content), settings)


def _may_hold_pictures(document: RawDocument) -> bool:
    head = document.content[:_HEAD_BYTES]
    return kinds.by_filename(document.filename) in _WITH_PICTURES or any(sign in head for sign in _SIGNS_OF_PICTURES)
