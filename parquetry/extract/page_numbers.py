"""Recognises printed page numbers: `12`, `- iv -`, `F-3`, `Page 3 of 12`, alone or beside other words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LONGEST = 40
"""characters; longer text is not a page number"""
_LONGEST_IN_WORDS = 4
"""words, as in `Page 3 of 12`"""
_PAGE_WORDS = frozenset({"page", "pages", "pg", "p", "seite", "s", "pagina", "página", "pág", "sida", "side", "sivu"})
_OF_WORDS = frozenset({"of", "von", "de", "di", "sur", "van", "av", "af"})
_FRAME = " \t-–—|·•*_~[]:."
_NUMBER = re.compile(
    r"(?:(?P<word>[^\W\d_]+)[.:]?[ \t]*)??(?P<prefix>[A-Z]{1,2}[-–])?(?P<value>\d{1,5}|[ivxlc]{1,8}|[IVXLC]{1,8})"
    r"(?:[ \t]*(?:/|\||(?P<of>[^\W\d_]+))[ \t]*(?P<total>\d{1,5}))?"
)
_ROMAN = re.compile(r"(c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class PageNumber:
    """A possible page number and the text beside it."""

    value: int
    style: str
    """key shared by the numbers of one sequence, apart from the text: digits or Roman, the prefix, the word"""
    is_explicit: bool
    """True if the text says `page` or gives the total"""
    beside: str = ""
    """text on the same line; empty if the number stands alone"""
    is_first: bool = False
    """True if the number precedes the text beside it"""


def page_number(text: str) -> PageNumber | None:
    """Parse a text that is nothing but a page number; return None for other text."""
    bare = text.strip(_FRAME) if len(text) <= _LONGEST else ""
    found = _NUMBER.fullmatch(bare)
    if found is None:
        return None
    word, of, digits = (found["word"] or "").lower(), (found["of"] or "").lower(), found["value"]
    if (word and word not in _PAGE_WORDS) or (of and of not in _OF_WORDS):
        return None
    value = int(digits) if digits.isdigit() else _roman(digits.lower())
    if value is None:
        return None
    style = f"{word} {found['prefix'] or ''}{'#' if digits.isdigit() else 'i'}"
    return PageNumber(value, style, is_explicit=bool(word or found["total"]))


def numbers_beside_text(text: str) -> Iterator[PageNumber]:
    """Yield the possible page numbers at the end and the start of a line of text, the longest form of each."""
    words = text.split()
    most = min(_LONGEST_IN_WORDS, len(words) - 1)
    if most < 1:
        return
    for first in (False, True):
        # `1. Knots` is a title.
        if not _may_be_number(words[0 if first else -1]) or (first and words[0].endswith((".", ")"))):
            continue
        for count in range(most, 0, -1):
            found = page_number(" ".join(words[:count] if first else words[-count:]))
            if found is not None:
                beside = " ".join(words[count:] if first else words[:-count]).strip(_FRAME)
                if beside:
                    yield PageNumber(found.value, found.style, found.is_explicit, beside, first)
                break


def _may_be_number(word: str) -> bool:
    word = word.strip(_FRAME).lower()
    return word[-1:].isdigit() or word in _PAGE_WORDS or (bool(word) and _ROMAN_VALUES.keys() >= set(word))


def without_page_number(text: str) -> str:
    """Remove a page number such as `Page 3 of 7` from a header or footer line; empty if nothing else is left.

    A number that a program fills in later may be missing: `Page of` counts as well.
    """
    if page_number(text) is not None:
        return ""
    for number in numbers_beside_text(text):
        if number.is_explicit:
            return number.beside
    words = text.split()
    start = len(words)
    while start and words[start - 1].strip(_FRAME).lower() in _OF_WORDS | {"", "/"}:
        start -= 1
    if start and words[start - 1].strip(_FRAME).lower() in _PAGE_WORDS - {"s", "p"}:
        words = words[: start - 1]
    return " ".join(words).strip(" _-–—|\t")


def _roman(digits: str) -> int | None:
    if not _ROMAN.fullmatch(digits):
        return None
    values = [_ROMAN_VALUES[digit] for digit in digits]
    return sum(
        -value if following > value else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )
