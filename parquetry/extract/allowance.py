"""How much text a document may give, and in how many parts: in proportion to the bytes that were read of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CHARACTERS_PER_BYTE = 32
"""of a file, and of what was unpacked of it; the most that honest documents give is in `docs/limits.md`"""
CHARACTERS_FREE = 100_000
"""that any document may give"""
CHARACTERS_PER_PART = 64
"""that the pages, sheets, slides and chapters of a document hold on average at least; each is a chunk of its own"""
PARTS_FREE = 10_000
"""that any document may have"""


@dataclass(slots=True)
class Allowance:
    """The characters that one document may give."""

    size: int
    """bytes of the document"""
    most: int | None = None
    """characters that a plan has promised to be the most, if it has"""
    most_parts: int | None = None
    """the same of parts"""
    unpacked: int = 0
    """bytes that were unpacked of it"""

    @property
    def characters(self) -> int:
        """The most that may be kept."""
        free = CHARACTERS_FREE + CHARACTERS_PER_BYTE * (self.size + self.unpacked)
        return free if self.most is None else min(free, self.most)

    def parts(self, characters: int) -> int:
        """The most parts that so many characters may stand in."""
        free = PARTS_FREE + characters // CHARACTERS_PER_PART
        return free if self.most_parts is None else min(free, self.most_parts)

    @property
    def why(self) -> str:
        """The reason why no more is kept."""
        if self.most is not None:
            return "more than the size of a file of this name allows"
        return f"more than {CHARACTERS_PER_BYTE} for each byte that was read"

    @property
    def why_joined(self) -> str:
        """The reason why there are no more parts."""
        if self.most_parts is not None:
            return "more than the name of the file lets expect"
        return f"more than {PARTS_FREE} and one for each {CHARACTERS_PER_PART} characters"


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current() -> Allowance | None:
    """What the document that is being read may give; None if nobody bounds it."""
    return _current.get()


@contextmanager
def reading(size: int, most: int | None = None, most_parts: int | None = None) -> Iterator[None]:
    """Bound the text of a document while it is read; what is unpacked of an attachment counts for what it is in.

    Args:
        size: bytes of the document.
        most: characters that it may give at most, if they are fewer than its size allows.
        most_parts: the same of parts.
    """
    outer, allowance = _current.get(), Allowance(size, most, most_parts)
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)
        if outer is not None:
            outer.unpacked += allowance.unpacked


def count_unpacked(size: int) -> None:
    """Count bytes that were unpacked of the document that is being read."""
    allowance = _current.get()
    if allowance is not None:
        allowance.unpacked += size
