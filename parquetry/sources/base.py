"""What every source is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from parquetry.model import Access, DocumentRow, Item, Unlisted


class Source(Protocol):
    """A place that documents come from: tells what it holds, and reads one of them. Used from several threads."""

    def scan(self, prefix: str) -> Iterator[Item | Unlisted]:
        """List everything whose path starts with `prefix`, one by one, in no particular order.

        What cannot be seen is reported as `Unlisted`; nothing of it is passed over in silence, because what is missing
        from a whole listing is removed from the corpus.

        Raises:
            SettingsError: the place does not exist, or is not what the settings say.
            TransientError: the listing could not be had, or broke off; nothing is removed.
            OSError: the same, from the operating system.
        """
        ...

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one document whole.

        Returns:
            The item as it was read, which differs from `item` if it changed since it was listed, and its bytes.

        Raises:
            BrokenDocument: it cannot be read, and trying again would not help.
            FileNotFoundError: it is not there any more.
            TransientError: it keeps changing, or could not be read now.
            OSError: the same, from the operating system.
        """
        ...


@runtime_checkable
class Hashing(Protocol):
    """A source of which hashing a document costs next to nothing: a local disk."""

    def hash(self, path: str) -> str:
        """`ids.content_hash` of one document, in bounded memory."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A source that asks its place only for what changed, once it knows what is published of it."""

    def remember(self, known: Mapping[str, DocumentRow]) -> None:
        """Take the current rows of this source, by path; called before `scan`."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source is and what the settings say of it: all that a provider is made from."""

    name: str
    """of the source"""
    uri: str
    """as in the settings; a local one is absolute"""
    access: Access = field(default_factory=Access)
    """of documents for which the place says nothing else"""
    include: tuple[str, ...] = ()
    """gitignore-style globs; empty for everything"""
    exclude: tuple[str, ...] = ()
    """gitignore-style globs"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """the table `[source.options]`, which every provider reads for itself: `sources.options.options_of`"""
    inner: tuple[str, ...] = ()
    """places within it that belong to other sources; what is listed there is left out, and links lead nowhere there"""
    corpus: Path | None = None
    """folder of the corpus if it is local, which no source may hold"""
