"""Sentence boundaries in prose, lists, tables and code, in any script. Pure.

Precise enough to choose a snippet. A missed boundary only makes the snippet longer; a false one, as after an
abbreviation, breaks it. So in doubt the text is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NARROW = 40
"""characters; prose is not wrapped at fewer"""
_FITS = 0.85
"""share of the longest line: a break is intended if the next word would still have fit within this share"""

_NEAR = 40
"""characters before and after a mark that decide if it ends a sentence"""

_CLOSERS = r"""(?:["'”’»›)\]}*_`」』）】》〉]|\[\d+\])*"""
_WIDE = "。！？｡．।॥؟۔።။។"
"""sentence ends that need no following space, or that have no other use"""
_END = re.compile(rf"(?:[{_WIDE}]+|[.!?…]+){_CLOSERS}")
_WORD_BEFORE = re.compile(r"[\w.]*\Z")
_LETTERS_WITH_DOTS = re.compile(r"\w(?:\.\w)+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    """mr mrs ms dr prof st messrs rev gen capt lt sgt hon fr hr frl mme mlle sra srta dña dott ing sig
    vs cf viz ca approx dept resp incl excl bzw vgl evtl ggf inkl exkl str bspw sog geb gest"""
)
"""abbreviations that never end a sentence"""
_BEFORE_NUMBERS = _words(
    """no nos nr fig figs eq eqs vol vols pp ch sec art ref refs abs ziff abb tel pág num núm
    jan feb mar apr jun jul aug sep sept oct nov dec"""
)
"""abbreviations that do not end a sentence if a number follows"""
_MONTHS = _words("januar februar märz april mai juni juli august september oktober november dezember jahrhundert")
"""words that follow an ordinal number in languages that write it with a dot"""
_LAST_SOMETIMES = frozenset(["a.m", "p.m"])
"""dotted abbreviations that may end a sentence"""

_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•‣▪◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+")
_ROW = re.compile(r"\s*\|.*\||.*\S(?:\t| \| )\S")
_CODE = re.compile(r".*(?:[;{}]|\):)\Z|\s*(?://|/\*|\*/|#include\b|@\w+\()|\s{4}.*[=(<>]|\t.*[=(<>]")
_NO_PROSE = re.compile(r"[={}<>$\\]|\w\(|^\s*[\w.-]+: ")
_ANYTHING = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, line of code, row of a table, item of a list or heading."""

    start: int
    """characters, 0-based"""
    end: int
    """characters, one past the last"""
    heading: bool
    """True for a Markdown heading"""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    alone: bool
    """True if the line is a unit of its own, independent of its neighbours"""
    starts: bool
    """True if a unit starts on this line"""


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text in order, without the surrounding white space.

    Args:
        text: text of a chunk or a document.

    Returns:
        Disjoint spans. They cover every letter and digit except those of code fences and table rules.
    """
    found: list[Sentence] = []
    for block in _blocks(text):
        first = block[0]
        if first.alone:
            found.append(Sentence(first.start, first.end, bool(_HEADING.match(first.text))))
        else:
            found += (Sentence(start, end, False) for start, end in _prose(text, first.start, block[-1].end))
    return found


def _blocks(text: str) -> Iterator[list[_Line]]:
    """Yield groups of lines: a wrapped paragraph or item, or a line that stands alone."""
    for paragraph in _paragraphs(text):
        width = max(NARROW, *(len(line.text) for line in paragraph))
        block = [paragraph[0]]
        for line in paragraph[1:]:
            if line.alone or line.starts or block[-1].alone or _meant(block, line, width):
                yield block
                block = []
            block.append(line)
        yield block


def _paragraphs(text: str) -> Iterator[list[_Line]]:
    """Yield runs of non-empty lines; a line without a letter or digit counts as empty."""
    paragraph: list[_Line] = []
    fenced = False
    for found in _LINE.finditer(text):
        line = found[0]
        fence = bool(_FENCE.match(line))
        fenced ^= fence
        after_gap = text[max(0, found.start() - 2) : found.start()] == "\n\n"
        if (fence or after_gap or not _ANYTHING.search(line)) and paragraph:
            yield paragraph
            paragraph = []
        if not fence and _ANYTHING.search(line):
            stripped = line.strip()
            start = found.start() + line.index(stripped)
            alone = fenced or any(form.match(line.rstrip()) for form in (_HEADING, _ROW, _CODE))
            paragraph.append(_Line(start, start + len(stripped), line, alone, bool(_ITEM.match(line))))
    if paragraph:
        yield paragraph


def _meant(block: Sequence[_Line], following: _Line, width: int) -> bool:
    """Return True if the line break is intended, not the result of wrapping."""
    last = block[-1]
    indented = len(last.text) - len(last.text.lstrip()) != len(following.text) - len(following.text.lstrip())
    if indented and not block[0].starts:
        return True
    if following.text.lstrip()[0].islower() and not any(_NO_PROSE.search(each.text) for each in (last, following)):
        return False
    first_word = following.text.split(maxsplit=1)[0][:20]
    return len(last.text.rstrip()) + 1 + len(first_word) <= width * _FITS


def _prose(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentence spans of running text."""
    marker = _ITEM.match(text, start, end)
    begin = start
    for found in _END.finditer(text, marker.end() if marker else start, end):
        if found.end() < end and _ends(text, begin, found, end):
            yield begin, found.end()
            begin = found.end()
            while begin < end and text[begin].isspace():
                begin += 1
    if begin < end:
        yield begin, end


def _ends(text: str, begin: int, found: re.Match[str], end: int) -> bool:
    if found[0][0] in _WIDE:
        return True
    rest = text[found.end() : min(end, found.end() + _NEAR)]
    following = rest.lstrip()
    if len(following) == len(rest):
        return False
    if found[0][0] in "!?" or not following:
        return True
    if following[0].islower():
        return False
    return found[0].startswith("..") or not _is_abbreviation(
        text[max(begin, found.start() - _NEAR) : found.start()], following
    )


def _is_abbreviation(before: str, following: str) -> bool:
    found = _WORD_BEFORE.search(before)
    word = found[0] if found else ""
    folded = word.casefold()
    if len(word) == 1 and word.isalpha():
        return True
    if _LETTERS_WITH_DOTS.fullmatch(word):
        return folded not in _LAST_SOMETIMES
    if word.isdigit():
        next_word = re.match(r"\w*", following)
        return len(word) <= 2 and next_word is not None and next_word[0].casefold() in _MONTHS
    return folded in _NEVER_LAST or (folded in _BEFORE_NUMBERS and following[0].isdigit())
