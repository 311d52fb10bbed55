"""Messages as evidence: their exact details and sentences, parsed once for all statements that rest on them."""

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
"""maximum characters of a sentence: text without full stops, such as a log or a table, is cut into pieces"""


@dataclass(frozen=True, slots=True)
class MessageSentence:
    """One sentence of a message."""

    text: str
    stems: frozenset[str]
    """stems of the content words"""


@dataclass(frozen=True, slots=True)
class MessageText:
    """One message."""

    folded: str
    """text as returned by `folded`"""
    plain: frozenset[str]
    """words, case-folded, and the parts of those with hyphens or slashes"""
    quantities: tuple[Quantity, ...]
    moments: frozenset[str]
    """dates, times of day and words of the calendar, in one spelling"""
    sentences: tuple[MessageSentence, ...]


@functools.lru_cache(maxsize=256)
def passage(text: str) -> MessageText:
    """Parse a message in time linear in its length."""
    words = read(_asked(text)).words
    moments, quantities, _ = moments_and_quantities(words)
    plain = {part for word in words for part in (word.plain, *re.split(r"[-/_.]", word.plain)) if part}
    return MessageText(folded(text), frozenset(plain), quantities, moments, tuple(map(_sentence, _pieces(text))))


def folded(text: str) -> str:
    """Normalise spellings that mean the same: case, blanks, quotation marks, compatibility forms."""
    straight = (
        unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    )
    return " ".join(straight.casefold().split())


def holds(passage: MessageText, part: str) -> bool:
    """Return True if a folded text occurs in a message, at word boundaries."""
    start = passage.folded.find(part)
    while start >= 0:
        end = start + len(part)
        before, after = passage.folded[start - 1 : start], passage.folded[end : end + 1]
        joined = (part[0].isalnum() and before.isalnum()) or (part[-1].isalnum() and after.isalnum())
        if not joined:
            return True
        start = passage.folded.find(part, start + 1)
    return False


def _sentence(text: str) -> MessageSentence:
    return MessageSentence(text, content(read(_asked(text)).words))


def _asked(text: str) -> str:
    """Detach question marks from the words before them."""
    return text.replace("?", " ?")


def _pieces(text: str) -> list[str]:
    return [
        piece
        for found in _SENTENCE.findall(text)
        for first in range(0, len(found), _CHARACTERS)
        if _LETTER_OR_NUMBER.search(piece := found[first : first + _CHARACTERS].strip())
    ]
