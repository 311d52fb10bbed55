"""Markdown tables in a text: header, rule and rows. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

Span = tuple[int, int]
"""character span: 0-based start, and one past the end"""

_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Table:
    """A table header and the rows below it."""

    header: Span
    """span of the row of column names"""
    rows: tuple[Span, ...]
    """spans of the other rows in order, without surrounding white space"""


def tables(text: str) -> list[Table]:
    """Return the tables of a text, in order, that have column names and at least one row.

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
    """Return True if no empty line separates the two lines."""
    return text.count("\n", first[1], second[0]) == 1


def _is_row(text: str, line: Span) -> bool:
    return text.find("|", *line) >= 0


def _is_rule(text: str, line: Span) -> bool:
    """Return True for `| --- | :-: |`, the rule below the column names."""
    marks = set(text[slice(*line)])
    return {"-", "|"} <= marks <= set("-|: \t")
