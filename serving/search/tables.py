"""Where the tables of a text are: header, rule and rows, as Markdown writes them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

Span = tuple[int, int]
"""characters from 0, and one past the last"""

_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Table:
    """A header with the rows below it."""

    header: Span
    """the row of column names"""
    rows: tuple[Span, ...]
    """the others in their order, without white space around them"""


def tables(text: str) -> list[Table]:
    """The tables of a text that have column names and at least one row, in order.

    A long table is stored in blocks that each repeat the header; every block is a table.
    """
    found: list[Table] = []
    lines = [_stripped(text, line.start(), line.end()) for line in _LINE.finditer(text)]
    number = 1
    while number < len(lines):
        header = lines[number - 1]
        if not (_is_rule(text, lines[number]) and _is_row(text, header) and _touch(text, header, lines[number])):
            number += 1
            continue
        rows: list[Span] = []
        number += 1
        while number < len(lines) and _is_row(text, lines[number]) and _touch(text, lines[number - 1], lines[number]):
            rows.append(lines[number])
            number += 1
        if rows and _WORD.search(text, *header):
            found.append(Table(header, tuple(rows)))
    return found


def _stripped(text: str, start: int, end: int) -> Span:
    line = text[start:end]
    return start + len(line) - len(line.lstrip()), start + len(line.rstrip())


def _touch(text: str, first: Span, second: Span) -> bool:
    """Whether a line follows the other without an empty one between them."""
    return text.count("\n", first[1], second[0]) == 1


def _is_row(text: str, line: Span) -> bool:
    return text.find("|", *line) >= 0


def _is_rule(text: str, line: Span) -> bool:
    """`| --- | :-: |`: the line below the column names."""
    marks = set(text[slice(*line)])
    return {"-", "|"} <= marks <= set("-|: \t")
