"""Answers of a language model as parts of a page: paragraphs, lists, code, and numbers that cite. Pure.

What a model writes may be what a document told it to write. It is text: of its marks the few below mean something, no
link or picture in it leads anywhere, and only numbers of known sources become links, to those sources.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_CHARACTERS = 100_000
"""characters of an answer that are shown"""
BlockKind = Literal["paragraph", "heading", "bullets", "numbers", "code", "table"]
SpanKind = Literal["text", "strong", "code", "cite"]
_ITEM = re.compile(r"[ \t]{0,12}(?:[-*•+]|(\d{1,3})[.)])[ \t]+(\S.*)")
_HEADING = re.compile(r"#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)")
# Each alternative ends within one line, so that a mark without its end costs at most that line once.
_SPAN = re.compile(
    r"\*\*(?P<strong>[^*\n]{1,500})\*\*|`(?P<code>[^`\n]{1,500})`|\[(?P<cite>\d{1,6}(?:,[ ]?\d{1,6}){0,9})\]"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line."""

    kind: SpanKind
    text: str
    """for `cite`, the number alone"""


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """A block of an answer."""

    kind: BlockKind
    lines: tuple[tuple[Span, ...], ...]
    """a line or an item each; one piece of text for code and tables"""
    start: int
    """first character in the text that was taken apart"""
    first: int = 1
    """number of the first item"""


def blocks_of(text: str, known: Collection[int]) -> list[AnswerBlock]:
    """Take an answer apart.

    Args:
        text: of the model.
        known: numbers of the sources that it was shown.
    """
    return [_block(kind, lines, start, known) for kind, lines, start in _grouped(text)]


def cited_in(text: str, known: Collection[int]) -> list[int]:
    """Return the numbers of the sources that an answer cites, each once, in order."""
    found = (span for block in blocks_of(text, known) for line in block.lines for span in line if span.kind == "cite")
    return list(dict.fromkeys(int(span.text) for span in found))


def _grouped(text: str) -> Iterator[tuple[BlockKind, list[str], int]]:
    """Yield kind, lines and start of each block."""
    kind: BlockKind | None = None
    lines: list[str] = []
    start = place = 0
    fenced = False
    for line in text.splitlines(keepends=True):
        here, place = place, place + len(line)
        plain = line.rstrip("\r\n")
        if fenced:
            if _FENCE.match(plain):
                yield "code", lines, start
                kind, lines, fenced = None, [], False
            else:
                lines.append(plain)
            continue
        opens = _FENCE.match(plain) is not None
        next_kind = None if opens or not plain.strip() else _kind_of(plain, kind)
        if kind is not None and (next_kind != kind or kind == "heading"):
            yield kind, lines, start
            lines = []
        if opens:
            kind, start, fenced = None, here, True
            lines = []
        elif next_kind is not None:
            if next_kind != kind or not lines:
                start = here
            lines.append(plain)
        kind = next_kind
    if fenced:
        yield "code", lines, start
    elif kind is not None and lines:
        yield kind, lines, start


def _kind_of(line: str, before: BlockKind | None) -> BlockKind:
    if line.lstrip().startswith("|"):
        return "table"
    if _HEADING.match(line):
        return "heading"
    if found := _ITEM.match(line):
        return "numbers" if found[1] else "bullets"
    if before in ("bullets", "numbers") and line[:1] in " \t":
        # An item goes on.
        return before
    return "paragraph"


def _block(kind: BlockKind, lines: Sequence[str], start: int, known: Collection[int]) -> AnswerBlock:
    if kind in ("code", "table"):
        return AnswerBlock(kind, ((Span("text", "\n".join(lines)),),), start)
    if kind == "heading":
        return AnswerBlock(kind, tuple(tuple(_spans(_HEADING.sub(r"\1", line), known)) for line in lines), start)
    if kind == "paragraph":
        return AnswerBlock(kind, tuple(tuple(_spans(line, known)) for line in lines), start)
    items: list[str] = []
    first = 1
    for line in lines:
        found = _ITEM.match(line)
        if found:
            if not items and found[1]:
                first = int(found[1])
            items.append(found[2])
        else:
            items[-1] += f" {line.strip()}"
    return AnswerBlock(kind, tuple(tuple(_spans(item, known)) for item in items), start, first)


def _spans(line: str, known: Collection[int]) -> Iterator[Span]:
    end = 0
    for found in _SPAN.finditer(line):
        kind = found.lastgroup
        numbers = [int(each) for each in found[kind].split(",")] if kind == "cite" else []
        if kind == "cite" and not all(number in known for number in numbers):
            # Of no source: text like any other.
            continue
        if found.start() > end:
            yield Span("text", line[end : found.start()])
        end = found.end()
        if kind == "strong":
            # A number within stands for its source, too.
            yield from (
                Span("strong" if each.kind == "text" else each.kind, each.text) for each in _spans(found[kind], known)
            )
        elif kind == "code":
            yield Span("code", found[kind])
        else:
            yield from (Span("cite", str(number)) for number in numbers)
    if end < len(line):
        yield Span("text", line[end:])


class GrowingAnswer:
    """An answer that arrives in pieces: only its last blocks are taken apart again."""

    def __init__(self) -> None:
        self._open = ""
        """the text from the first block on that may change"""
        self._finished = 0
        self.length = 0
        """characters so far"""

    def add(self, text: str) -> None:
        """Add a piece."""
        self._open += text
        self.length += len(text)

    @property
    def waiting(self) -> int:
        """Characters that the next `blocks` takes apart."""
        return len(self._open)

    def blocks(self, known: Collection[int]) -> tuple[int, list[AnswerBlock]]:
        """Return the number of blocks that stay as they were returned before, and those that follow them."""
        kept = self._finished
        found = blocks_of(self._open, known)
        settled = len(found) - 1
        if settled > 0 and "\n" not in self._open[found[-1].start :]:
            # A line that has just begun may turn out to be the next item of the list before it.
            settled -= 1
        if settled > 0:
            self._open = self._open[found[settled].start :]
            self._finished += settled
        return kept, found
