"""Limits on a document's text and number of parts, in proportion to the bytes read from the document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CHARACTERS_PER_BYTE = 32
"""characters of text allowed per byte of a file and of what was unpacked from it; `docs/limits.md` lists the highest
ratios of genuine documents"""
CHARACTERS_FREE = 100_000
"""characters allowed for any document"""
CHARACTERS_PER_PART = 64
"""minimum average characters per page, sheet, slide or chapter, each of which is a chunk of its own"""
PARTS_FREE = 10_000
"""parts allowed for any document"""


@dataclass(slots=True)
class Allowance:
    """Limits on the text of one document."""

    size: int
    """size of the document in bytes"""
    most: int | None = None
    """upper limit in characters promised by a plan; None if there is none"""
    most_parts: int | None = None
    """upper limit on parts promised by a plan; None if there is none"""
    unpacked: int = 0
    """bytes unpacked from the document"""

    @property
    def characters(self) -> int:
        """Return the maximum number of characters to keep."""
        free = CHARACTERS_FREE + CHARACTERS_PER_BYTE * (self.size + self.unpacked)
        return free if self.most is None else min(free, self.most)

    def parts(self, characters: int) -> int:
        """Return the maximum number of parts for a text of `characters` characters."""
        free = PARTS_FREE + characters // CHARACTERS_PER_PART
        return free if self.most_parts is None else min(free, self.most_parts)

    @property
    def why(self) -> str:
        """Return the reason for the limit on characters, for a warning."""
        if self.most is not None:
            return "more than the size of a file of this name allows"
        return f"more than {CHARACTERS_PER_BYTE} for each byte that was read"

    @property
    def why_joined(self) -> str:
        """Return the reason for the limit on parts, for a warning."""
        if self.most_parts is not None:
            return "more than the name of the file lets expect"
        return f"more than {PARTS_FREE} and one for each {CHARACTERS_PER_PART} characters"


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current() -> Allowance | None:
    """Return the limits of the document being read; None if there are none."""
    return _current.get()


@contextmanager
def reading(size: int, most: int | None = None, most_parts: int | None = None) -> Iterator[None]:
    """Limit the text of a document while it is read.

    What a plan promises of a container holds for each document in it, whose unpacked bytes count for the container.

    Args:
        size: size of the document in bytes.
        most: upper limit in characters, if lower than the limit from the document's size.
        most_parts: upper limit on parts, if a plan sets one.
    """
    outer = _current.get()
    if outer is not None:
        most, most_parts = _lower(most, outer.most), _lower(most_parts, outer.most_parts)
    allowance = Allowance(size, most, most_parts)
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)
        if outer is not None:
            outer.unpacked += allowance.unpacked


def _lower(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def count_unpacked(size: int) -> None:
    """Count bytes unpacked from the document being read."""
    allowance = _current.get()
    if allowance is not None:
        allowance.unpacked += size
