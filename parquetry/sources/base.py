"""Protocols that sources implement, and the place a source is opened from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from parquetry.model import Access, DocumentRow, Item, Unlisted


class Source(Protocol):
    """Place that documents come from: lists its documents and reads one at a time. Called from several threads."""

    def scan(self, prefix: str) -> Iterator[Item | Unlisted]:
        """List every document whose path starts with `prefix`, one by one, in no particular order.

        Anything that cannot be listed is reported as `Unlisted`. A source never skips it silently, because a document
        missing from a whole listing is removed from the corpus.

        Raises:
            SettingsError: the place does not exist, or does not match the settings.
            TransientError: the listing failed or broke off; nothing is removed.
            OSError: the same, from the operating system.
        """
        ...

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one whole document.

        Returns:
            The item as read, which differs from `item` if it changed since it was listed, and its bytes.

        Raises:
            BrokenDocument: it cannot be read, and a retry would not help.
            FileNotFoundError: it no longer exists.
            TransientError: it keeps changing, or cannot be read at the moment.
            OSError: the same, from the operating system.
        """
        ...


@runtime_checkable
class Hashing(Protocol):
    """Source that can hash a document at almost no cost, such as a local disk."""

    def hash(self, path: str) -> str:
        """Return `ids.content_hash` of one document, computed in bounded memory."""
        ...


@runtime_checkable
class Pointed(Protocol):
    """Source that finds a single document without listing others."""

    def look(self, path: str) -> Item | Unlisted | None:
        """Return the document of a path; None if there is none. Raises as `Source.scan`."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """Source that requests only what changed, once it knows its published documents."""

    def remember(self, known: Mapping[str, DocumentRow]) -> None:
        """Store the current rows of this source, keyed by path; called before `scan`."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Location and settings of a source; the input of every provider."""

    name: str
    """name of the source"""
    uri: str
    """path or URL from the settings; a local path is absolute"""
    access: Access = field(default_factory=Access)
    """access of documents for which the place specifies nothing else"""
    include: tuple[str, ...] = ()
    """gitignore-style globs; empty includes everything"""
    exclude: tuple[str, ...] = ()
    """gitignore-style globs"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """the table `[source.options]`; each provider validates it with `sources.options.options_of`"""
    inner: tuple[str, ...] = ()
    """places within this one that belong to other sources; not listed here, and links into them are not followed"""
    corpus: Path | None = None
    """folder of the corpus if it is local; no source may contain it"""
