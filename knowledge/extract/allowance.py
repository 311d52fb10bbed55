"""How much text a document may give: no more than so many characters for each byte that was read of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CHARACTERS_PER_BYTE = 32
"""of a file, and of what was unpacked of it; the most that honest documents give is in `docs/limits.md`"""
CHARACTERS_FREE = 100_000
"""that any document may give"""


@dataclass(slots=True)
class Allowance:
    """The characters that one document may give."""

    size: int
    """bytes of the document"""
    unpacked: int = 0
    """bytes that were unpacked of it"""

    @property
    def characters(self) -> int:
        """The most that may be kept."""
        return CHARACTERS_FREE + CHARACTERS_PER_BYTE * (self.size + self.unpacked)


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def current() -> Allowance | None:
    """What the document that is being read may give; None if nobody bounds it."""
    return _current.get()


@contextmanager
def reading(size: int) -> Iterator[None]:
    """Bound the text of a document while it is read; what is unpacked of an attachment counts for what it is in.

    Args:
        size: bytes of the document.
    """
    outer, allowance = _current.get(), Allowance(size)
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
