"""Decoded file of chat sessions of a still unknown format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parquetry.errors import SkippedDocument
from parquetry.extract.encoding import decode, replaced
from parquetry.model import RawDocument
from parquetry.sessions.transcripts.values import Values, find_values


@dataclass(frozen=True, slots=True)
class Content:
    """Text of a file, and its JSON values if it is JSON."""

    text: str
    """line feeds only, without byte order mark"""
    values: Values | None
    """None if it is not JSON"""
    replaced: tuple[str, ...]
    """a warning if bytes could not be decoded"""

    @property
    def head(self) -> tuple[object, ...]:
        """Return the first JSON values; none if it is not JSON."""
        return self.values.head if self.values is not None else ()

    def each(self) -> Iterator[tuple[str, object]]:
        """Yield the JSON values with their positions: `line 12`, `item 3`."""
        return self.values.each() if self.values is not None else iter(())


def read_content(raw: RawDocument) -> Content:
    """Decode a file.

    Raises:
        SkippedDocument: `empty`, or `no-session`: it is not text.
        BrokenDocument: `damaged`, it began as JSON and is not.
    """
    if not raw.content.strip():
        raise SkippedDocument("empty", "the file has no content")
    text, encoding = decode(raw.content)
    warnings = replaced(raw.content, text, encoding)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Content(text, find_values(text), warnings)
