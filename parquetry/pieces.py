"""One text split for a program that has no corpus."""

from __future__ import annotations

from dataclasses import dataclass

from parquetry.chunking.chunker import Chunker
from parquetry.errors import SettingsError
from parquetry.extract.markdown import headings_of
from parquetry.model import Part

_SIZES = (16, 100_000)


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of a text: `text` stands at `start:end`."""

    text: str
    start: int
    """0-based character"""
    end: int
    """one past the last character"""


def split(text: str, size: int = 1200, overlap: int = 200) -> tuple[Piece, ...]:
    """Split a text along its structure: sections, paragraphs, sentences, words.

    Args:
        text: plain text or Markdown.
        size: characters of the largest piece, 16 to 100,000.
        overlap: characters repeated between neighbours, below `size`.

    Returns:
        The pieces in order. Every character but white space is in one.

    Raises:
        SettingsError: the sizes do not fit.
    """
    from parquetry.settings.sections import ChunkingSettings

    if not _SIZES[0] <= size <= _SIZES[1] or not 0 <= overlap < size:
        raise SettingsError(
            f"size must be {_SIZES[0]} to {_SIZES[1]} and overlap 0 to size - 1; these are {size} and {overlap}"
        )
    if not text.strip():
        return ()
    part = Part(0, len(text), "document", 1, None, "markdown")
    chunks = Chunker(ChunkingSettings(preset=None, size=size, overlap=overlap), None).split(
        text, [part], list(headings_of(text))
    )
    return tuple(Piece(text[chunk.start : chunk.end], chunk.start, chunk.end) for chunk in chunks)
