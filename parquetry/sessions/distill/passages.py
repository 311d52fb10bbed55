"""Messages as evidence: what is exact in them, and their sentences, read once for all statements that rest on them."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from parquetry.sessions.quantities import Quantity, moments_and_quantities
from parquetry.sessions.statement import content, read

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_LETTER_OR_NUMBER = re.compile(r"[^\W_]")
_CHARACTERS = 400
"""of a sentence at most: what has no full stop, a log or a table, is cut into pieces"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a message."""

    text: str
    stems: frozenset[str]
    """of the words with a meaning of their own"""


@dataclass(frozen=True, slots=True)
class Passage:
    """One message."""

    folded: str
    """as `folded` gives it"""
    plain: frozenset[str]
    """its words, case-folded, and the parts of those with hyphens or slashes"""
    quantities: tuple[Quantity, ...]
    moments: frozenset[str]
    """dates, times of day and words of the calendar, in one spelling"""
    sentences: tuple[Sentence, ...]


@functools.lru_cache(maxsize=256)
def passage(text: str) -> Passage:
    """Read a message. Takes time that grows with its length alone."""
    words = read(_asked(text)).words
    moments, quantities, _ = moments_and_quantities(words)
    plain = {part for word in words for part in (word.plain, *re.split(r"[-/_.]", word.plain)) if part}
    return Passage(folded(text), frozenset(plain), quantities, moments, tuple(map(_sentence, _pieces(text))))


def folded(text: str) -> str:
    """A text in which spellings that mean the same are the same: case, blanks, quotation marks, compatibility forms."""
    straight = (
        unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    )
    return " ".join(straight.casefold().split())


def holds(passage: Passage, part: str) -> bool:
    """Whether a folded text stands in a message, not as a part of longer words."""
    start = passage.folded.find(part)
    while start >= 0:
        end = start + len(part)
        before, after = passage.folded[start - 1 : start], passage.folded[end : end + 1]
        joined = (part[0].isalnum() and before.isalnum()) or (part[-1].isalnum() and after.isalnum())
        if not joined:
            return True
        start = passage.folded.find(part, start + 1)
    return False


def _sentence(text: str) -> Sentence:
    return Sentence(text, content(read(_asked(text)).words))


def _asked(text: str) -> str:
    """A text in which a question mark is no part of the word before it."""
    return text.replace("?", " ?")


def _pieces(text: str) -> list[str]:
    return [
        piece
        for found in _SENTENCE.findall(text)
        for first in range(0, len(found), _CHARACTERS)
        if _LETTER_OR_NUMBER.search(piece := found[first : first + _CHARACTERS].strip())
    ]
