"""Finds text between pairs of marks in one pass, even if closing marks are missing.

A pattern like `<!--.*?-->` searches the rest of a text for each opening mark that is never closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import AnyStr, Generic


@dataclass(frozen=True, slots=True)
class Enclosed(Generic[AnyStr]):
    """The text between two marks."""

    start: int
    """0-based offset of the opening mark"""
    end: int
    """0-based offset one past the closing mark"""
    kind: AnyStr
    content: AnyStr


class Marks(Generic[AnyStr]):
    """Pairs of marks that enclose text.

    Args:
        opening: pattern of an opening mark, which inspects a bounded number of characters; its group is the kind.
        closings: kind in lower case -> pattern of the closing mark. The entry for the empty text, if present, closes
            marks without a kind and marks that their own kind does not close.
    """

    def __init__(self, opening: re.Pattern[AnyStr], closings: Mapping[AnyStr, re.Pattern[AnyStr]]) -> None:
        self._opening: re.Pattern[AnyStr] = opening
        self._closings: Mapping[AnyStr, re.Pattern[AnyStr]] = closings

    def find(self, text: AnyStr) -> Iterator[Enclosed[AnyStr]]:
        """Yield enclosed texts from left to right; marks inside them are ignored."""
        closings = dict(self._closings)
        place = 0
        while closings and (found := self._opening.search(text, place)) is not None:
            place = found.start() + 1
            for kind in dict.fromkeys(((found[1] or text[:0]).lower(), text[:0])):
                if kind not in closings:
                    continue
                closing = closings[kind].search(text, found.end())
                if closing is not None:
                    content = text[found.end() : closing.start()]
                    yield Enclosed(found.start(), place := closing.end(), kind, content)
                    break
                # A mark that is not closed here is not closed further on either.
                del closings[kind]

    def replace(self, text: AnyStr, replacement: Callable[[AnyStr], AnyStr]) -> AnyStr:
        """Replace every enclosed text, including its marks, by the result of `replacement` for its content."""
        pieces: list[AnyStr] = []
        place = 0
        for found in self.find(text):
            pieces.append(text[place : found.start])
            pieces.append(replacement(found.content))
            place = found.end
        pieces.append(text[place:])
        return text[:0].join(pieces)


def longest_run(text: str, character: str) -> int:
    """Return the length of the longest run of a character."""
    return max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)
