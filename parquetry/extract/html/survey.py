"""The text of a page, block by block, and how much of it the content finder found."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from parquetry.extract.html.nodes import BLOCKS, is_unseen, walk

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_LONG = 40
"""characters by which texts are told from each other"""
_FIND_WINDOW = 60_000
"""characters after the last match that are searched, so that long pages take time in proportion to their size"""
_SMALLER_HEADINGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
_WORDS = re.compile(r"[\W_]+")


@dataclass(slots=True)
class PageBlock:
    """Content of a block element; counts of characters cover visible text only."""

    node: LexborNode
    depth: int
    characters: int = 0
    linked: int = 0
    """characters inside links"""
    links: int = 0
    jumps: int = 0
    """number of links that lead to a place in the same page"""
    found: int = 0
    """characters that the content finder found as well"""
    before: int = 0
    """characters that were found before the block"""
    headings: int = 0
    """number of `h1` elements inside"""
    teasers: int = 0
    """number of smaller headings inside that are links as a whole"""
    first: int = 0
    """position of the first inner block, in the order in which blocks end"""
    place: int = 0
    """position of the block in that order"""
    start: int = 0
    """first text inside, in the order of the page"""
    end: int = 0
    """one past the last text inside"""


def survey(body: LexborNode, found: str) -> list[PageBlock]:
    """Return all block elements of a page, inner before outer, with the body last.

    Args:
        body: the body of the page.
        found: the text that the content finder returned.
    """
    counted = _Survey()
    walk(body, counted.enter, counted.leave)
    return counted.finish(body, letters(found))


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _WORDS.sub("", text).lower()


class _Survey:
    """Counts, for each block element, its visible text."""

    def __init__(self) -> None:
        self._open: list[PageBlock] = []
        self._blocks: list[PageBlock] = []
        self._text: list[str] = []
        self._loose = PageBlock(None, -1)  # type: ignore[arg-type]
        self._links: list[int] = []
        """letters in links before each open link"""
        self._linked = 0
        self._texts: list[str] = []
        """letters of all texts of the page, each without a block inside it"""

    def enter(self, node: LexborNode) -> bool:
        top = self._open[-1] if self._open else self._loose
        if node.is_text_node:
            text = node.text_content or ""
            self._text.append(text)
            if self._links:
                linked = len(letters(text))
                self._linked += linked
                top.linked += linked
            return False
        if is_unseen(node):
            return False
        tag = node.tag
        if tag == "a":
            self._links.append(self._linked)
        elif tag in BLOCKS:
            self._flush()
            block = PageBlock(node, len(self._open), headings=int(tag == "h1"), first=len(self._blocks))
            block.start = len(self._texts)
            self._open.append(block)
        return True

    def leave(self, node: LexborNode) -> None:
        if node.tag == "a":
            # A permalink has no letters.
            if self._linked > self._links.pop():
                top = self._open[-1] if self._open else self._loose
                top.links += 1
                top.jumps += (node.attributes.get("href") or "").startswith("#")
        elif node.tag in BLOCKS:
            self._flush()
            block = self._open.pop()
            if node.tag in _SMALLER_HEADINGS and block.links and block.linked == block.characters:
                block.teasers = 1
            self._close(block, self._open[-1] if self._open else self._loose)

    def finish(self, body: LexborNode, found: str) -> list[PageBlock]:
        self._flush()
        self._loose.node = body
        self._loose.place = len(self._blocks)
        self._loose.end = len(self._texts)
        blocks = [*self._blocks, self._loose]
        until = [0, *accumulate(_matched(self._texts, found))]
        for block in blocks:
            block.before = until[block.start]
            block.found = until[block.end] - block.before
        return blocks

    def _close(self, block: PageBlock, outer: PageBlock) -> None:
        block.place = len(self._blocks)
        block.end = len(self._texts)
        self._blocks.append(block)
        outer.characters += block.characters
        outer.linked += block.linked
        outer.links += block.links
        outer.jumps += block.jumps
        outer.headings += block.headings
        outer.teasers += block.teasers

    def _flush(self) -> None:
        key = letters("".join(self._text))
        self._text.clear()
        if key:
            (self._open[-1] if self._open else self._loose).characters += len(key)
            self._texts.append(key)


def _matched(texts: list[str], found: str) -> list[int]:
    """Return for each text of a page how many of its characters were found.

    Texts that occur once in both, in the same order, are matched first. Any other may occur in both by chance, so it is
    sought only in what was found between those around it.
    """
    anchors = _anchors(texts, found)
    limits = [len(found)] * len(texts)
    following = len(found)
    for number in reversed(range(len(texts))):
        limits[number] = following
        following = anchors.get(number, following)
    matched = [0] * len(texts)
    cursor = 0
    for number, text in enumerate(texts):
        start = anchors.get(number, cursor)
        last = min(limits[number], start + _FIND_WINDOW + len(text))
        place = _place(text, found, start, last)
        if place is not None:
            matched[number] = len(text)
            cursor = place
    return matched


def _place(text: str, found: str, start: int, last: int) -> int | None:
    """Return one past the end of a text in what was found; of a text with a gap, its beginning and end are enough."""
    place = found.find(text, start, last)
    if place >= 0:
        return place + len(text)
    if len(text) < 2 * _LONG:
        return None
    place = found.find(text[:_LONG], start, last)
    end = found.find(text[-_LONG:], place + _LONG, place + len(text)) if place >= 0 else -1
    return end + _LONG if end >= 0 else None


def _anchors(texts: list[str], found: str) -> dict[int, int]:
    """Return places of long texts that begin like no other text of the page, and occur once in what was found."""
    numbers: dict[str, int | None] = {}
    for number, text in enumerate(texts):
        if len(text) >= _LONG:
            begin = text[:_LONG]
            numbers[begin] = None if begin in numbers else number
    places: dict[int, int | None] = {}
    for place in range(len(found) - _LONG + 1):
        anchor = numbers.get(found[place : place + _LONG])
        if anchor is not None:
            places[anchor] = None if anchor in places else place
    pairs = [(number, place) for number, place in sorted(places.items()) if place is not None]
    return dict(_longest_rise(pairs))


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs in which the second numbers rise as the first do."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else -1)
    rise: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        rise.append(pairs[number])
        number = before[number]
    return rise[::-1]
