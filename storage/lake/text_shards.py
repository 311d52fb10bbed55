"""Shards of `chunks` by the texts in them, so that looking a text up reads few of them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from parquetry.storage.database import Connection
from parquetry.storage.files.layout import file_name

KEY_DIGITS = 15
"""hexadecimal digits of a text's hash in its key: 60 bits"""


def text_key(text_hash: str) -> int:
    """Return the beginning of a text's hash, enough to find the shards that may hold it; a third of its memory."""
    return int(text_hash[:KEY_DIGITS], 16)


@dataclass(frozen=True, slots=True)
class ShardsOfTexts:
    """Shards of `chunks` in which some texts may be."""

    known: frozenset[str] = frozenset()
    """names of the shards of which it is known what they hold; all others have to be read"""
    by_text: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """text hash -> names of the known shards that may hold the text, newest first; a text in none of them is missing"""

    def newest(self, files: Sequence[str]) -> list[str]:
        """Return the files to read for the newest rows of the texts."""
        return self._among(files, {names[0] for names in self.by_text.values()})

    def all(self, files: Sequence[str]) -> list[str]:
        """Return the files to read for all rows of the texts."""
        return self._among(files, {name for names in self.by_text.values() for name in names})

    def _among(self, files: Sequence[str], holding: Container[str]) -> list[str]:
        return [file for file in files if (name := file_name(file)) not in self.known or name in holding]


class TextDirectory(Protocol):
    """Knows shards by the texts that they hold."""

    def shards_of(self, connection: Connection, text_hashes: Sequence[str]) -> ShardsOfTexts:
        """Return the shards in which texts may be; nothing if that cannot be told.

        Args:
            connection: connection to use, to no database.
            text_hashes: hashes of the texts.
        """
        ...
