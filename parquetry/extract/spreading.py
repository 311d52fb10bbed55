"""Copies of a value to all cells that it covers, as many as the document may give text at all."""

from __future__ import annotations

import math

from parquetry.extract import allowance


class Spreading:
    """Counts the characters of copies; made while a document is read, whose size bounds them."""

    def __init__(self) -> None:
        allowed = allowance.current()
        self._left: float = math.inf if allowed is None else allowed.characters
        self.refused = 0
        """values that were not copied any more"""

    def allows(self, value: str, copies: int = 1) -> bool:
        """Whether a value may be copied so often; what is allowed is counted."""
        return self.allows_characters(copies * (1 + len(value)))

    def allows_characters(self, count: int) -> bool:
        """The same for so many characters."""
        if count > self._left:
            self.refused += 1
            return False
        self._left -= count
        return True
