"""Finds what stands between two marks in one pass, also where the closing ones are missing.

A pattern like `<!--.*?-->` looks through the rest of a text for each opening mark that nothing closes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import AnyStr, Generic


@dataclass(frozen=True, slots=True)
class Enclosed(Generic[AnyStr]):
    """What two marks enclose."""

    start: int
    """0-based offset of the opening mark"""
    end: int
    """one past the closing mark"""
    kind: AnyStr
    content: AnyStr


class Marks(Generic[AnyStr]):
    """Pairs of marks that enclose something.

    Args:
        opening: finds an opening mark, by looking at a bounded number of characters; its group says how it is closed.
        closings: what the group says, in lower case -> what closes it. What says nothing, or is not closed as it says,
            is closed by what stands under the empty text, if there is such an entry.
    """

    def __init__(self, opening: re.Pattern[AnyStr], closings: Mapping[AnyStr, re.Pattern[AnyStr]]) -> None:
        self._opening: re.Pattern[AnyStr] = opening
        self._closings: Mapping[AnyStr, re.Pattern[AnyStr]] = closings

    def find(self, text: AnyStr) -> Iterator[Enclosed[AnyStr]]:
        """What is enclosed, from left to right; marks within count for nothing."""
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
                # What nothing closes here nothing closes further on.
                del closings[kind]

    def replace(self, text: AnyStr, replacement: Callable[[AnyStr], AnyStr]) -> AnyStr:
        """The text with everything that is enclosed replaced, marks and all, by what its content gives."""
        pieces: list[AnyStr] = []
        place = 0
        for found in self.find(text):
            pieces.append(text[place : found.start])
            pieces.append(replacement(found.content))
            place = found.end
        pieces.append(text[place:])
        return text[:0].join(pieces)


def longest_run(text: str, character: str) -> int:
    """How often a character stands in a row at most."""
    return max(map(len, re.findall(f"{re.escape(character)}+", text)), default=0)
