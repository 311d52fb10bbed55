"""The interface of all extractors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


class Extractor(Protocol):
    """Converts documents of one format family to normalised text. Runs in a worker process that may be killed."""

    name: str
    """name of the extractor; with the version, part of every document's fingerprint"""
    version: int
    """version of the extractor, raised here and in `READERS` whenever the same bytes may give different text: documents
    are extracted again"""
    media_types: frozenset[str]
    """media types that the extractor reads"""
    settings_used: frozenset[str]
    """names of the `ExtractionSettings` fields that affect the result; changing one re-extracts the documents of this
    extractor and no others"""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one document.

        Raises:
            SkippedDocument: the document has no text.
            BrokenDocument: the document is damaged, locked or over a limit.
        """
        ...
