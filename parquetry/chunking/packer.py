"""Packing of the blocks of a structured text into chunks: sections whole where they fit, headings with their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from parquetry.chunking.splitter import Cutter, Ruler, Span
from parquetry.model import Heading

_ROOMY = 0.4
"""fill at which a chunk is closed rather than completed with a part of a block that fits into the next one whole"""
_OUTER_FILL = 0.25
"""fill at which a chunk is closed before a heading of an outer level; a smaller remainder is joined with it"""
_TINY_FILL = 0.1
"""fill below which a chunk is not closed before a section that is too long for one chunk"""
_LEAST_ROOM = 0.25
"""minimum share of room left in a chunk for a block to begin there"""
_NO_LEVEL = 100

_TABLE_OR_FENCE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*$|^[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)*",
    re.MULTILINE,
)
_LOOSE_TABLE = re.compile(r"^[^\n|]+\|[^\n]*\n[ \t]*:?-+:?[ \t]*\|[-:| \t]*(?:\n[^\n|]*\|[^\n]*)*", re.MULTILINE)
_UNDERLINE = re.compile(r"^([^\w\s])\1+[ \t]*$")


@dataclass(frozen=True, slots=True)
class Unit:
    """Block of text that is kept together where possible."""

    kind: Literal["heading", "text", "table", "code"]
    start: int
    """0-based"""
    end: int
    """one past the end"""
    level: int = _NO_LEVEL
    """level of a heading"""
    section_end: int = 0
    """for a heading, start of the next heading of its level or of an outer one"""
    language: str | None = None
    """language of code in Markdown"""


def items(text: str, start: int, end: int, headings: Sequence[Heading], *, markdown: bool) -> Iterator[Unit]:
    """Yield the blocks of a span, in order, with only white space between them.

    Args:
        text: the whole text.
        start: 0-based.
        end: one past the end.
        headings: those in the span, in order.
        markdown: True if lines of `|` are tables and fences enclose code.
    """
    ends = _section_ends(headings, end)
    place = start
    for heading, section_end in zip(headings, ends, strict=True):
        if heading.start < place:
            continue
        yield from _body(text, place, heading.start, markdown=markdown)
        stop = min(end, _heading_end(text, heading.start))
        yield Unit("heading", heading.start, stop, heading.level, section_end)
        place = stop
    yield from _body(text, place, end, markdown=markdown)


def _section_ends(headings: Sequence[Heading], end: int) -> list[int]:
    ends = [end] * len(headings)
    following: list[int] = []
    for place in range(len(headings) - 1, -1, -1):
        while following and headings[following[-1]].level > headings[place].level:
            following.pop()
        if following:
            ends[place] = headings[following[-1]].start
        following.append(place)
    return ends


def _heading_end(text: str, start: int) -> int:
    """Return the end of a heading: of its line, of its underline, or of the three lines of one with an overline."""
    stops = [start - 1]
    for _ in range(3):
        stop = text.find("\n", stops[-1] + 1)
        stops.append(len(text) if stop < 0 else stop)
        if stop < 0:
            break
    lines = [text[before + 1 : stop] for before, stop in pairwise(stops)]
    if len(lines) == 3 and _UNDERLINE.match(lines[0]) and _UNDERLINE.match(lines[2]):
        return stops[3]
    if len(lines) > 1 and lines[1] and _UNDERLINE.match(lines[1]):
        return stops[2]
    return stops[1]


def _body(text: str, start: int, end: int, *, markdown: bool) -> Iterator[Unit]:
    place = start
    found = _TABLE_OR_FENCE.search(text, place, end) if markdown else None
    while found is not None or (markdown and place < end):
        stop = found.start() if found is not None else end
        loose = _LOOSE_TABLE.search(text, place, stop)
        if loose is not None:
            yield from _stripped("text", text, place, loose.start())
            yield from _stripped("table", text, loose.start(), loose.end())
            place = loose.end()
            continue
        if found is None:
            break
        yield from _stripped("text", text, place, stop)
        if found["fence"]:
            place = _fence_end(text, found, end)
            yield Unit("code", stop, stop + len(text[stop:place].rstrip()), language=found["language"] or None)
        else:
            place = found.end()
            yield from _stripped("table", text, stop, place)
        found = _TABLE_OR_FENCE.search(text, place, end)
    yield from _stripped("text", text, place, end)


def _fence_end(text: str, opening: re.Match[str], end: int) -> int:
    """Return the end of a fenced block: its closing fence, or, as in CommonMark, the end of the text."""
    fence = opening["fence"]
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
    found = closing.search(text, opening.end(), end)
    return found.end() if found is not None else end


def _stripped(kind: Literal["text", "table"], text: str, start: int, end: int) -> Iterator[Unit]:
    piece = text[start:end]
    bare = piece.lstrip()
    if bare:
        start += len(piece) - len(bare)
        yield Unit(kind, start, start + len(bare.rstrip()))


class Packer:
    """Fills chunks with items, in order.

    Args:
        cutter: cuts items that are too long for one chunk.
        ruler: measures spans.
        size: of the largest chunk, in units.
        overlap: text repeated between chunks of one section, in units.
    """

    def __init__(self, cutter: Cutter, ruler: Ruler, size: int, overlap: int) -> None:
        self._cutter = cutter
        self._ruler = ruler
        self._size = size
        self._overlap = overlap
        self.spans: list[Span] = []
        self._start = -1
        self._end = -1
        self._level = _NO_LEVEL
        """level of the section in which the open chunk starts"""
        self._section_level = _NO_LEVEL
        """level of the section that is being added"""
        self._headings: Span | None = None
        """end of the text before the headings at the end of the open chunk, and start of those headings"""
        self._repeatable = -1
        """start of the running text at the end of the open chunk; -1 if it ends with something else"""

    def add(self, item: Unit) -> None:
        if item.kind == "heading":
            self._add_heading(item)
        else:
            self._add_block(item)

    def close(self) -> None:
        """Close the open chunk."""
        if self._start >= 0:
            self.spans.append((self._start, self._end))
        self._start = self._repeatable = -1
        self._headings = None

    def _open(self, start: int, end: int) -> None:
        self._start, self._end, self._level = start, end, self._section_level

    @property
    def _only_headings(self) -> bool:
        return self._headings is not None and self._headings[1] == self._start

    def _add_heading(self, item: Unit) -> None:
        if self._start >= 0 and not self._only_headings:
            fill = self._ruler.size(self._start, self._end) / self._size
            whole = self._ruler.size(self._start, item.section_end) <= self._size
            outer = item.level < self._level
            if (not whole and fill >= _TINY_FILL) or (outer and fill >= _OUTER_FILL):
                self.close()
        self._section_level = item.level
        if self._start >= 0 and self._ruler.size(self._start, item.end) > self._size:
            self.close()
        if self._ruler.size(item.start, item.end) > self._size:
            self._take(self._cutter.text(item.start, item.end))
            return
        if self._headings is None:
            self._headings = (self._end, item.start)
        if self._start < 0:
            self._open(item.start, item.end)
        self._end, self._repeatable = item.end, -1

    def _add_block(self, item: Unit) -> None:
        if self._extended(item):
            return
        if self._start >= 0 and self._is_better_alone(item):
            if self._headings is not None and not self._only_headings:
                # The headings at the end go with the text that follows them.
                before, headings = self._headings
                self.spans.append((self._start, before))
                self._open(headings, self._end)
            else:
                self._turn(item)
            if self._extended(item):
                return
        room = self._size - (self._ruler.size(self._start, item.start) if self._start >= 0 else 0)
        pieces = self._cut(item, room)
        if self._start >= 0 and self._ruler.size(self._start, pieces[0][1]) > self._size:
            self.close()
        self._take(pieces)
        self._repeatable = pieces[-1][0] if item.kind == "text" else -1

    def _extended(self, item: Unit) -> bool:
        """Add an item to the open chunk, or a new one, if it fits; return True if it did."""
        start = self._start if self._start >= 0 else item.start
        if self._ruler.size(start, item.end) > self._size:
            return False
        if self._start < 0:
            self._open(item.start, item.end)
        if item.kind != "text":
            self._repeatable = -1
        elif self._repeatable < 0:
            self._repeatable = item.start
        self._end, self._headings = item.end, None
        return True

    def _is_better_alone(self, item: Unit) -> bool:
        """Return True if an item that does not fit should start a new chunk rather than be cut here."""
        used = self._ruler.size(self._start, item.start) / self._size
        if 1 - used < _LEAST_ROOM:
            return True
        whole = self._ruler.size(item.start, item.end) <= self._size
        return whole and not self._only_headings and (used >= _ROOMY or item.kind != "text")

    def _turn(self, item: Unit) -> None:
        """Close the open chunk; the next one begins with its end if both are running text of one section."""
        start, end, repeatable = self._start, self._end, self._repeatable
        self.close()
        if item.kind == "text" and repeatable >= 0:
            length = self._ruler.size(end, item.end)
            budget = min(self._overlap, self._size - length) if length <= self._size else self._overlap
            again = self._cutter.overlap_start(max(start, repeatable), end, budget)
            if again < end:
                self._open(again, end)

    def _cut(self, item: Unit, room: int) -> list[Span]:
        if item.kind == "table":
            return self._cutter.rows(item.start, item.end, room)
        if item.kind == "code":
            return self._cutter.code(item.start, item.end, item.language, room)
        return self._cutter.text(item.start, item.end, room)

    def _take(self, pieces: list[Span]) -> None:
        """Close the open chunk with the first piece, and leave the last piece open."""
        start = self._start if self._start >= 0 else pieces[0][0]
        pieces = [(start, pieces[0][1]), *pieces[1:]]
        self.spans.extend(pieces[:-1])
        self._open(*pieces[-1])
        self._headings, self._repeatable = None, -1
