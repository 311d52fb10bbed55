"""Puts lines with Hebrew, Arabic and other right-to-left letters into reading order. Pure: uses no PDF library.

A page says where each glyph is drawn, not the order in which they are read. The order is restored from left to right
on the page, by the rules of the Unicode Bidirectional Algorithm (https://www.unicode.org/reports/tr9/) backwards.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from typing import Literal

RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_LIGATURE_FORMS = (range(0xFB1D, 0xFDFC), range(0xFE70, 0xFEFD))
"""code points of letters in the form of a place in a word, and of ligatures"""
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("«", "»"), ("‹", "›"))
_SIGNS_OF_NUMBERS = frozenset({"ET", "ES", "CS"})

Side = Literal["left", "right"]
Direction = Literal["L", "R", "D", "N"]
"""left to right, right to left, digit, neutral"""
_STRONG: tuple[Direction, Direction] = ("L", "R")
"""directions of letters"""


@dataclass(frozen=True, slots=True)
class Glyph:
    """One letter, sign or ligature at its place on the page."""

    text: str
    """characters that it stands for: several for a ligature; marks follow their letter"""
    left: float
    """in points"""
    right: float
    word: int
    """number of the word of the line, as the engine divides it"""

    @property
    def direction(self) -> Direction:
        classes = [unicodedata.bidirectional(character) for character in self.text]
        if any(kind in ("R", "AL") for kind in classes):
            return "R"
        if "L" in classes:
            return "L"
        return "D" if any(kind in ("EN", "AN") for kind in classes) else "N"


def is_mostly_right_to_left(text: str) -> bool:
    """Return True if more letters of a text are written from right to left than from left to right."""
    rightward = len(RIGHT_TO_LEFT.findall(text))
    return 2 * rightward > sum(map(str.isalpha, text))


def ligature(text: str) -> str:
    """Return the letters of a right-to-left ligature in reading order.

    Args:
        text: letters of one glyph in the engine's order, which is the reverse of what the font says, but is right for
            ligatures that have a code point of their own.
    """
    turned = text[::-1]
    return text if text in _ligatures() and turned not in _ligatures() else turned


@cache
def _ligatures() -> frozenset[str]:
    spelled = (unicodedata.normalize("NFKC", chr(code)) for forms in _LIGATURE_FORMS for code in forms)
    return frozenset(text for text in spelled if len(text) > 1 and not any(map(unicodedata.combining, text)))


def in_reading_order(glyphs: Sequence[Glyph], *, page_is_rtl: bool) -> str | None:
    """Return the text of a line in the order in which it is read.

    Args:
        glyphs: those of one line, in any order, without spaces.
        page_is_rtl: decides for a line that begins and ends in letters of different directions.

    Returns:
        The text, with a space between words; None if glyphs of different words stand among each other.
    """
    row = _with_marks(sorted(glyphs, key=lambda glyph: (glyph.left + glyph.right, glyph.left)))
    if len(list(groupby(row, key=lambda glyph: glyph.word))) > len({glyph.word for glyph in row}):
        return None
    items = [row[0]] if row else []
    for before, glyph in pairwise(row):
        if before.word != glyph.word:
            items.append(Glyph(" ", before.right, glyph.left, -1))
        items.append(glyph)
    base = _base(items, page_is_rtl=page_is_rtl)
    runs = _runs(items, base)
    ordered = reversed(runs) if base == "R" else runs
    return _with_pairs("".join(text for run in ordered for text in (reversed(run[1]) if run[0] == "R" else run[1])))


def _with_marks(row: Sequence[Glyph]) -> list[Glyph]:
    """Append each combining mark to the letter above or below which it is drawn."""
    letters = [glyph for glyph in row if not _is_mark(glyph)]
    marks = [glyph for glyph in row if _is_mark(glyph)]
    if not letters or not marks:
        return letters or marks
    middles = [letter.left + letter.right for letter in letters]
    texts = [[letter.text] for letter in letters]
    for mark in marks:
        near = bisect_left(middles, mark.left + mark.right)
        # Of two letters at the same distance, the mark follows the one to its right.
        place = min(
            range(max(0, near - 1), min(len(letters), near + 1)),
            key=lambda i: (_distance(mark, letters[i]), -letters[i].right),
        )
        texts[place].append(mark.text)
    return [replace(letter, text="".join(text)) for letter, text in zip(letters, texts, strict=True)]


def _distance(mark: Glyph, letter: Glyph) -> float:
    """Return the points between the middle of a mark and a letter, to a tenth; 0 above or below it."""
    middle = (mark.left + mark.right) / 2
    return round(max(letter.left - middle, middle - letter.right, 0.0), 1)


def _is_mark(glyph: Glyph) -> bool:
    return all(unicodedata.bidirectional(character) == "NSM" for character in glyph.text)


def _base(items: Sequence[Glyph], *, page_is_rtl: bool) -> Direction:
    strong = [direction for direction in (item.direction for item in items) if direction in _STRONG]
    if strong and strong[0] == strong[-1]:
        return strong[0]
    return "R" if page_is_rtl else "L"


def _runs(items: Sequence[Glyph], base: Direction) -> list[tuple[Direction, list[str]]]:
    """Divide a line into runs of one direction, from left to right on the page; a number is one piece of its run."""
    pieces = _pieces(items)
    directions = [direction for direction, _ in pieces]
    before = _nearest(directions)
    after = _nearest(directions[::-1])[::-1]
    for i, direction in enumerate(directions):
        if direction == "D":
            # As a number after Latin letters belongs to them: `Windows 10`.
            latin = before[i] == "L" or (before[i] is None and after[i] == "L")
            directions[i] = "L" if latin else "R"
    before = _nearest(directions)
    after = _nearest(directions[::-1])[::-1]
    for i, direction in enumerate(directions):
        if direction == "N":
            left, right = before[i] or base, after[i] or base
            directions[i] = left if left == right else base
    runs: list[tuple[Direction, list[str]]] = []
    for direction, (_, text) in zip(directions, pieces, strict=True):
        if not runs or runs[-1][0] != direction:
            runs.append((direction, []))
        runs[-1][1].append(text)
    return runs


def _nearest(directions: Sequence[Direction]) -> list[Direction | None]:
    """Return for each place the last direction before it of letters; None without one."""
    found: list[Direction | None] = []
    last: Direction | None = None
    for direction in directions:
        found.append(last)
        last = direction if direction in _STRONG else last
    return found


def _pieces(items: Sequence[Glyph]) -> list[tuple[Direction, str]]:
    """Return the glyphs with their direction, digits of a number and the signs within it joined."""
    kinds = [item.direction for item in items]
    for i, item in enumerate(items):
        sign = unicodedata.bidirectional(item.text[0]) if kinds[i] == "N" else ""
        if sign in _SIGNS_OF_NUMBERS:
            before = i > 0 and kinds[i - 1] == "D"
            after = i + 1 < len(items) and kinds[i + 1] == "D"
            kinds[i] = "D" if (before and after) or (sign == "ET" and (before or after)) else "N"
    pieces: list[tuple[Direction, str]] = []
    for kind, group in groupby(zip(kinds, items, strict=True), key=lambda pair: pair[0]):
        texts = [item.text for _, item in group]
        pieces += [(kind, "".join(texts))] if kind == "D" else [(kind, text) for text in texts]
    return pieces


def _with_pairs(text: str) -> str:
    """Turn brackets round that close before they open: their glyphs are mirrored from right to left."""
    for opening, closing in _PAIRS:
        signs = [character for character in text if character in (opening, closing)]
        if signs and not _balances(signs, opening) and _balances(signs, closing):
            text = text.translate({ord(opening): closing, ord(closing): opening})
    return text


def _balances(signs: Sequence[str], opening: str) -> bool:
    depth = 0
    for sign in signs:
        depth += 1 if sign == opening else -1
        if depth < 0:
            return False
    return depth == 0
