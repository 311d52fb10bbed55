"""Splitting of a single text, for programs without a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from parquetry.chunking.chunker import Chunker
from parquetry.extract.markdown import headings_of
from parquetry.model import Part
from parquetry.settings.sections import parse_settings


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
    settings = parse_settings({"chunking": {"size": size, "overlap": overlap}}, "split")
    if not text.strip():
        return ()
    part = Part(0, len(text), "document", 1, None, "markdown")
    chunks = Chunker(settings.chunking, None).split(text, [part], list(headings_of(text)))
    return tuple(Piece(text[chunk.start : chunk.end], chunk.start, chunk.end) for chunk in chunks)
