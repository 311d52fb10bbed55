"""Tables of web pages: distinguishing data from layout tables, and reading their cells."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import zip_longest
from typing import TYPE_CHECKING

from parquetry.extract.builder import FREE_FILLING, MAX_FILLING, filled_up
from parquetry.extract.html.nodes import is_unseen, running_text
from parquetry.extract.html.shape import span

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_COLUMNS = 200
"""columns of a row beyond which a cell does not span"""
MAX_CELL_CHARACTERS = 2000
"""characters above which a cell is running text in a layout table"""
_REPEATED_CHARACTERS = 60
"""characters up to which the text of a cell that spans rows is repeated in each, so that each row is complete"""

_LEADING_SIGN = frozenset({"$", "€", "£", "¥", "US$", "("})
_TRAILING_SIGN = frozenset({")", "%", ")%", "pts"})
_NUMBER = re.compile(r"^[-+(−]?[$€£]?\s*\d[\d.,\s%)]*$")

Rows = list[list[str]]


def is_layout_table(table: LexborNode) -> bool:
    """Return True if a table only arranges the page, so that its cells read as consecutive blocks."""
    if (table.attributes.get("role") or "").lower() in ("presentation", "none"):
        return True
    shown = len(table.text() or "")
    nested = sum(len(inner.text() or "") for inner in table.css("td table, th table") if inner.mem_id != table.mem_id)
    if nested > shown / 3 or table.css_first("td pre, td h1, td h2, td h3, td h4, td blockquote, td p + p + p"):
        return True
    rows = _rows(table)
    if max((len(_cells(row)) for row in rows), default=0) < 2:
        return True
    long = (cell for row in rows for cell in _cells(row) if len(cell.text() or "") > MAX_CELL_CHARACTERS)
    # Long content may be a style sheet.
    return any(len(running_text(cell)) > MAX_CELL_CHARACTERS for cell in long)


def read_table(table: LexborNode) -> tuple[Rows, bool]:
    """Return the cells of a table with spans resolved, and whether the first row names the columns."""
    rows: Rows = []
    carried: dict[int, tuple[int, str]] = {}
    headed = 0
    repeatable = FREE_FILLING
    for row in _rows(table):
        cells = _cells(row)
        names_columns = bool(cells) and (
            all(cell.tag == "th" for cell in cells) or (row.parent is not None and row.parent.tag == "thead")
        )
        repeatable += MAX_FILLING * len(cells)
        line, repeated = _place(cells, carried, repeat=names_columns) if repeatable > 0 else _unspanned(cells)
        repeatable -= repeated
        if not any(line):
            continue
        if names_columns and headed == len(rows):
            headed += 1
        rows.append(line)
    rows = filled_up(rows)
    if 1 < headed < len(rows):
        rows = [_merge_names(rows[:headed]), *rows[headed:]]
    rows = _without_empty_columns(_join_signs(rows))
    return rows, headed > 0 or looks_like_names(rows)


def looks_like_names(rows: Rows) -> bool:
    """Return True if a first row without header markup reads like column names."""
    if len(rows) < 2:
        return False
    first = rows[0]
    return all(cell and len(cell) <= 80 and not _NUMBER.match(cell) for cell in first) and len(set(first)) == len(first)


def _rows(table: LexborNode) -> list[LexborNode]:
    """Return the rows of a table, without the rows of nested tables."""
    rows: list[LexborNode] = []
    for section in table.iter():
        if section.tag in ("thead", "tbody", "tfoot") and not is_unseen(section):
            rows.extend(row for row in section.iter() if row.tag == "tr" and not is_unseen(row))
        elif section.tag == "tr":
            rows.append(section)
    return rows


def _cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter() if cell.tag in ("td", "th") and not is_unseen(cell)]


def _unspanned(cells: list[LexborNode]) -> tuple[list[str], int]:
    return [running_text(cell) for cell in cells], 0


def _place(cells: list[LexborNode], carried: dict[int, tuple[int, str]], *, repeat: bool) -> tuple[list[str], int]:
    """Return a row's cells including those that span into it, and the number of characters and cells added by spans."""
    line: list[str] = []
    own = 0

    def fill_carried() -> None:
        while (column := len(line)) in carried:
            left, text = carried[column]
            line.append(text)
            if left > 1:
                carried[column] = (left - 1, text)
            else:
                del carried[column]

    for cell in cells:
        fill_carried()
        text = running_text(cell)
        own += len(text) + 1
        across = max(1, min(span(cell, "colspan"), MAX_COLUMNS - len(line)))
        down = span(cell, "rowspan")
        for place in range(across):
            if down > 1:
                carried[len(line)] = (down - 1, text if len(text) <= _REPEATED_CHARACTERS and place == 0 else "")
            line.append(text if place == 0 or repeat else "")
    fill_carried()
    return line, sum(map(len, line)) + len(line) - own


def _merge_names(rows: Rows) -> list[str]:
    return [" / ".join(dict.fromkeys(name for name in column if name)) for column in zip_longest(*rows, fillvalue="")]


def _join_signs(rows: Rows) -> Rows:
    """Join `$` and `)` in columns of their own, as in financial reports, to their numbers."""
    for row in rows:
        for place in range(len(row) - 1):
            if row[place] in _LEADING_SIGN and row[place + 1]:
                row[place], row[place + 1] = "", row[place] + row[place + 1]
        for place in range(len(row) - 1, 0, -1):
            if row[place] in _TRAILING_SIGN and row[place - 1]:
                row[place - 1], row[place] = row[place - 1] + row[place], ""
    return rows


def _without_empty_columns(rows: Rows) -> Rows:
    kept = sorted({place for row in rows for place, cell in enumerate(row) if cell})
    return [[row[place] for place in kept[: bisect_left(kept, len(row))]] for row in rows]
