"""Joins words whose letters are set apart, as in `A N N U A L  R E P O R T`. Pure: uses no PDF library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

SPACED = re.compile(r"(?<!\S)[^\W\d_](?: [^\W_]){3,}(?!\S)")
"""letters set apart"""
_LEAST_LETTERS = 4
"""letters of the longest word, below which letters set apart are letters"""
_LEAST_SMALL = 6
"""the same for small letters, which are names of variables"""
_LEAST_DISTINCT = 3
"""different letters of it: `X X X X` is a row of crosses"""
_MOST_GAP = 1.2
"""multiple of the type size above which the gap between two letters is one between columns"""
_WORD_GAP = 1.5
"""multiple of the usual gap between letters from which a gap divides words"""
_EVEN = 0.35
"""largest difference between gaps within words, as a share of the usual one and of the type size"""
_LATIN = re.compile(r"[A-Z]+")
_VOWELS = re.compile(r"[AEIOUY]")

Letter = tuple[str, float, float]
"""character, left and right in points"""


def joined(letters: Sequence[Letter], size: float) -> str | None:
    """Return letters set apart as words; None if they are no words, as names of columns or variables.

    Args:
        letters: without spaces, from left to right.
        size: of the type, in points.
    """
    gaps = [following[1] - letter[2] for letter, following in pairwise(letters)]
    usual = median(sorted(gaps)[: max(1, (3 * len(gaps) + 3) // 4)])
    words = [letters[0][0]]
    within = []
    for gap, (character, _, _) in zip(gaps, letters[1:], strict=True):
        if gap > _WORD_GAP * usual + 0.1 * size:
            words.append(character)
        else:
            words[-1] += character
            within.append(gap)
    if not within or not 0 < usual <= _MOST_GAP * size or min(gaps) < 0:
        return None
    if max(abs(gap - usual) for gap in within) > _EVEN * usual + 0.15 * size:
        return None
    return " ".join(words) if _is_word(max(words, key=len)) else None


def _is_word(text: str) -> bool:
    letters = text.upper()
    if (
        len(letters) < (_LEAST_SMALL if text.islower() else _LEAST_LETTERS)
        or len(set(letters)) < _LEAST_DISTINCT
        or not letters.isalpha()
    ):
        return False
    steps = {ord(after) - ord(before) for before, after in pairwise(letters)}
    return steps != {1} and (not _LATIN.fullmatch(letters) or _VOWELS.search(letters) is not None)
