"""Fingerprint of the chunking, without the chunker: every run compares it with the published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry import ids
from parquetry.model import ChunkSize

if TYPE_CHECKING:
    from parquetry.settings.embedding import ChunkingSettings

CHARACTERS_PER_TOKEN = 4.0
"""characters that stand for a token where none can be counted"""
VERSION = 4
"""raised whenever the same text and settings may produce different chunks"""


def fingerprint(settings: ChunkingSettings, tokenizer_id: str | None) -> str:
    """Hash everything that shapes chunks.

    Args:
        settings: as given.
        tokenizer_id: id of the tokenizer if tokens are counted; None otherwise.
    """
    return ids.settings_hash(
        {
            "version": VERSION,
            "size": settings.size,
            "overlap": settings.overlap,
            "unit": settings.unit,
            "across_pages": settings.across_pages,
            "tokenizer": tokenizer_id if settings.unit == "tokens" else None,
        }
    )


def sized(settings: ChunkingSettings, size: ChunkSize | None, *, in_tokens: bool) -> ChunkingSettings:
    """Return the settings for the chunks of one document.

    Args:
        settings: settings of all documents.
        size: its own size; None for that in the settings.
        in_tokens: True if tokens can be counted; if not, four characters stand for one.
    """
    if size is None:
        return settings
    scale = 1 if in_tokens else int(CHARACTERS_PER_TOKEN)
    values = {"size": size.tokens * scale, "overlap": size.overlap * scale}
    return settings.model_copy(update={**values, "unit": "tokens" if in_tokens else "characters"})
