"""What every extractor is."""

from __future__ import annotations

from typing import Protocol

from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


class Extractor(Protocol):
    """Turns the bytes of one format family into normalised text. Runs in a worker process that may be killed."""

    name: str
    """of the extractor; with the version it is part of every document's fingerprint"""
    version: int
    """raised whenever the same bytes may give another text: documents are then extracted again"""
    media_types: frozenset[str]
    """what it reads"""
    settings_used: frozenset[str]
    """names of the fields of `ExtractionSettings` that change what it returns: a change of one of them extracts again
    what this extractor read, and nothing else"""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one document.

        Raises:
            SkippedDocument: there is no text in it.
            BrokenDocument: it is damaged, locked or over a limit.
        """
        ...
