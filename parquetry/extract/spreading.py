"""Limits copies of a value to all cells that it covers, by the characters allowed for the document."""

from __future__ import annotations

import math

from parquetry.extract import allowance


class Spreading:
    """Counts the copied characters; created while a document is read, whose size sets the limit."""

    def __init__(self) -> None:
        allowed = allowance.current()
        self._left: float = math.inf if allowed is None else allowed.characters
        self.refused = 0
        """number of refused copies"""

    def allows(self, value: str, copies: int = 1) -> bool:
        """Return True if a value may be copied that many times; allowed copies are counted."""
        return self.allows_characters(copies * (1 + len(value)))

    def allows_characters(self, count: int) -> bool:
        """The same for a number of characters."""
        if count > self._left:
            self.refused += 1
            return False
        self._left -= count
        return True
