"""Fingerprint of what shaped a document's chunks and vectors: a short string that shows which stage to redo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parquetry.model import ChunkSize

NONE = "0"
"""placeholder for a stage that was not reached"""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One hash per stage; a stage is redone if its hash differs."""

    extraction: str
    chunking: str
    embedding: str

    def __str__(self) -> str:
        return f"{self.extraction}-{self.chunking}-{self.embedding}"

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Parse the result of `str()`; any other text differs from every fingerprint."""
        parts = text.split("-")
        return cls(*parts) if len(parts) == 3 else cls("", "", "")


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Fingerprints of the present settings, by media type."""

    extraction: Callable[[str | None], str]
    """media type -> hash of the extractor and its settings"""
    chunking: str
    embedding: str
    sized: Callable[[ChunkSize], str] = repr
    """size of chunks of one document -> hash of the chunking"""

    def of(self, media_type: str | None, chunk_size: ChunkSize | None = None) -> Fingerprint:
        """Return the fingerprint of a document.

        Args:
            media_type: its media type, if known.
            chunk_size: its own size of chunks; None for that in the settings.
        """
        chunking = self.chunking if chunk_size is None else self.sized(chunk_size)
        return Fingerprint(self.extraction(media_type), chunking, self.embedding)
