"""Excerpts of a chunk for display: prose wrapped, code and tables line by line. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from parquetry.language.stems import stop_words
from parquetry.serving.search.tables import tables

SHOWN_LINES = 4
"""lines of a chunk in an excerpt"""
STEM_CHARACTERS = 5
"""leading characters that identify a word across inflections, well enough for choosing lines"""
_SHORT = 3
"""characters; words up to this length must match exactly"""
_GAP = "..."
_TAB = 4
"""columns of a tab stop in code"""
_FENCE = re.compile(r"\s*(?:```+|~~~+)(.*)")
_INDENTED = re.compile(r"(?: {4}|\t)")
_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")

_Kind = Literal["prose", "code", "row", "nothing"]


@dataclass(frozen=True, slots=True)
class _Line:
    """A display line."""

    text: str
    header: str | None = None
    """column names, if the line is a table row"""


def excerpt(text: str, query: str, width: int, *, code: bool, language: str) -> list[str]:
    """Return the few consecutive lines of a chunk with most of the query's words, in any inflection.

    Table rows come with their column names. Empty lines are left out.

    Args:
        text: text of the chunk.
        query: query as typed.
        width: line width in characters; longer lines of code and tables are cut.
        code: True if the whole text is source code.
        language: language of the stop words, as in `search.language`.
    """
    lines = [_Line(_cut(line, width)) for line in text.split("\n") if line.strip()] if code else _lines(text, width)
    asked = set(re.findall(r"\w+", query.casefold()))
    words = {word[:STEM_CHARACTERS] for word in asked - stop_words(language) or asked}
    # Column names belong to every row.
    found = [_found(words, f"{line.text}\n{line.header or ''}".casefold()) for line in lines]
    last = max(0, len(lines) - SHOWN_LINES)
    start = max(range(last + 1), key=lambda line: (len(set().union(*found[line : line + SHOWN_LINES])), -line))
    return [
        *_before(lines, start),
        *(line.text for line in lines[start : start + SHOWN_LINES]),
        *[_GAP] * (start < last),
    ]


def wrapped(text: str, width: int) -> list[str]:
    """Return all lines of a chunk, long ones wrapped with a hanging indent."""
    return [part for line in text.split("\n") for part in _folded(line, width) or [""]]


def _folded(line: str, width: int) -> list[str]:
    line = line.expandtabs(_TAB)
    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(line, width, subsequent_indent=" " * indent if indent < width // 2 else "")


def _cut(line: str, width: int) -> str:
    line = line.expandtabs(_TAB).rstrip()
    return line if len(line) <= width else line[: width - len(_GAP)] + _GAP


def _found(words: set[str], line: str) -> set[str]:
    own = set(re.findall(r"\w+", line))
    return {word for word in words if (word in line if len(word) > _SHORT else word in own)}


def _before(lines: Sequence[_Line], start: int) -> list[str]:
    """Return the lines above an excerpt: a row's column names, and an ellipsis if text is left out."""
    header = lines[start].header if start else None
    if header is None:
        return [_GAP] * (start > 0)
    if lines[start - 1].text == header:
        return [*[_GAP] * (start > 1), header]
    return [header, _GAP]


def _lines(text: str, width: int) -> list[_Line]:
    """Return the display lines of a text that may mix prose, code and tables."""
    shown: list[_Line] = []
    paragraph: list[str] = []
    for line, kind, header in _told(text):
        if paragraph and (kind != "prose" or _begins(line) or _HEADING.match(paragraph[0])):
            shown += map(_Line, _paragraph(paragraph, width))
            paragraph = []
        if kind == "prose":
            paragraph.append(line)
        elif kind != "nothing":
            shown.append(_Line(_cut(line, width), header and _cut(header, width)))
    return [*shown, *map(_Line, _paragraph(paragraph, width))]


def _begins(line: str) -> bool:
    """Return True if the line starts a heading or list item."""
    return bool(_HEADING.match(line) or _ITEM.match(line))


def _paragraph(lines: Sequence[str], width: int) -> list[str]:
    """Join lines of prose into a paragraph; keep an indented block as code."""
    if lines and all(map(_INDENTED.match, lines)):
        return [part for line in lines for part in _folded(line, width)]
    return textwrap.wrap(" ".join(" ".join(lines).split()), width)


def _told(text: str) -> Iterator[tuple[str, _Kind, str | None]]:
    """Yield every line with its kind and, for a table row, the column names."""
    headers: dict[int, str | None] = {}
    for table in tables(text):
        names = text[slice(*table.header)]
        headers |= {table.header[0]: None} | {row[0]: names for row in table.rows}
    lines = text.split("\n")
    fenced, ruled = _begins_in_code(lines), False
    place = 0
    for line in lines:
        start = place + len(line) - len(line.lstrip())
        place += len(line) + 1
        if _FENCE.match(line):
            fenced = not fenced
            yield line, "nothing", None
        elif not line.strip() or (ruled and not fenced):
            yield line, "nothing", None
        elif fenced:
            yield line, "code", None
        elif start in headers:
            yield line.strip(), "row", headers[start]
        else:
            yield line, "prose", None
        # The rule below the column names is drawn, not stored.
        ruled = start in headers and headers[start] is None


def _begins_in_code(lines: Sequence[str]) -> bool:
    """Return True if the chunk starts inside a code block: an odd number of fences, the first without a language."""
    fences = [found[1].strip() for line in lines if (found := _FENCE.match(line))]
    return len(fences) % 2 == 1 and not fences[0]
