"""What every source is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from knowledge.model import Item, Unlisted


class Source(Protocol):
    """A place that documents come from: tells what it holds, and reads one of them."""

    cheap_reads: bool
    """whether reading a document to hash it costs next to nothing (a local disk)"""

    def scan(self, prefix: str) -> Iterator[Item | Unlisted]:
        """List everything below `prefix`, one by one, in no particular order.

        What cannot be seen is reported as `Unlisted`; nothing of it is passed over in silence.

        Raises:
            SettingsError: the place does not exist or is not what the settings say.
        """
        ...

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one document whole.

        Returns:
            The item as it was read, which differs from `item` if it changed since it was listed, and its bytes.

        Raises:
            TransientError: it keeps changing, or could not be read now.
            OSError: the same, from the operating system.
        """
        ...

    def hash(self, path: str) -> str:
        """`ids.content_hash` of one document, in bounded memory."""
        ...
