"""Tables of web pages: distinguishing data from layout tables, and reading their cells."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import zip_longest
from typing import TYPE_CHECKING

from parquetry.extract.builder import FREE_FILLING, MAX_FILLING, filled_up
from parquetry.extract.grid import are_periods_over_numbers
from parquetry.extract.html.nodes import is_unseen, running_text
from parquetry.extract.html.shape import span

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_COLUMNS = 200
"""columns of a row beyond which a cell does not span"""
MAX_CELL_CHARACTERS = 2000
"""characters above which a cell is running text in a layout table"""
_SHORT_CELL = 80
"""mean characters up to which cells are those of data"""
_LONG_CELL = 400
"""characters beyond which a cell is running text, if nothing says that the table holds data"""
_CODE_LINES = 4
"""line breaks of code beyond which it does not read on one line"""
_HEADED = "td h1, td h2, td h3, td h4"
_REPEATED_CHARACTERS = 60
"""characters up to which the text of a cell that spans rows is repeated in each, so that each row is complete"""

_LEADING_SIGN = frozenset({"$", "€", "£", "¥", "US$", "("})
_TRAILING_SIGN = frozenset({")", "%", ")%", "pts"})
_NUMBER = re.compile(r"^[-+(−]?[$€£]?\s*\d[\d.,\s%)]*$")
_BEGINS_NUMBER = re.compile(r"[-+(−$€£¥\s]{0,4}(?:[\d.,]|[-–—]\s*\)?$)")
"""a number, or the dash that stands for none"""
_A_NUMBER = re.compile(r"(?:US)?[-+(−$€£¥\s]{0,6}(?:[.,]?\d[\d.,\s]{0,40}|[-–—]\s?)\)?")

Rows = list[list[str]]


def is_layout_table(table: LexborNode) -> bool:
    """Return True if a table only arranges the page, so that its cells read as consecutive blocks.

    Blocks in a cell (an inner table, a heading, code, a quotation, several paragraphs) speak for layout, unless the
    table says that it holds data or is as regular as data.
    """
    if (table.attributes.get("role") or "").lower() in ("presentation", "none"):
        return True
    rows = [cells for row in _rows(table) if (cells := _cells(row))]
    if max(map(len, rows), default=0) < 2:
        return True
    long = (cell for cells in rows for cell in cells if len(cell.text() or "") > MAX_CELL_CHARACTERS)
    # Long content may be a style sheet.
    if any(len(running_text(cell)) > MAX_CELL_CHARACTERS for cell in long):
        return True
    return _holds_blocks(table) and not (len(rows) > 1 and (_says_data(table, rows) or _is_regular(rows)))


def _holds_blocks(table: LexborNode) -> bool:
    shown = len(table.text() or "")
    nested = sum(len(inner.text() or "") for inner in table.css("td table, th table") if inner.mem_id != table.mem_id)
    return nested > shown / 3 or table.css_first(f"{_HEADED}, td pre, td blockquote, td p + p + p") is not None


def _says_data(table: LexborNode, rows: list[list[LexborNode]]) -> bool:
    """Return True for a caption, a summary, a head, or cells that name rows or columns."""
    summary = (table.attributes.get("summary") or "").lower()
    return (
        (bool(summary) and "layout" not in summary)
        or any(part.tag in ("caption", "thead") for part in table.iter())
        or any(cell.tag == "th" or "scope" in cell.attributes or "headers" in cell.attributes for cell in rows[0])
    )


def _is_regular(rows: list[list[LexborNode]]) -> bool:
    """Return True for rows of as many short cells each, of which few hold headings or code of many lines."""
    columns = max(map(len, rows))
    cells = [cell for row in rows for cell in row]
    if 5 * sum(len(row) == columns for row in rows) < 4 * len(rows):
        return False
    texts = [len(cell.text() or "") for cell in cells]
    if sum(texts) > _SHORT_CELL * len(cells) or max(texts) > _LONG_CELL:
        return False
    headed = sum(cell.css_first("h1, h2, h3, h4") is not None for cell in cells)
    lined = any((code.text() or "").strip().count("\n") >= _CODE_LINES for cell in cells for code in cell.css("pre"))
    return 2 * headed <= len(cells) and not lined


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
    words = all(cell and len(cell) <= 80 and not _NUMBER.match(cell) for cell in first) and len(set(first)) == len(
        first
    )
    return words or are_periods_over_numbers(rows)


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
            if row[place] in _LEADING_SIGN and _BEGINS_NUMBER.match(row[place + 1]):
                row[place], row[place + 1] = "", row[place] + row[place + 1]
        for place in range(len(row) - 1, 0, -1):
            if row[place] in _TRAILING_SIGN and _A_NUMBER.fullmatch(row[place - 1]):
                row[place - 1], row[place] = row[place - 1] + row[place], ""
    return rows


def _without_empty_columns(rows: Rows) -> Rows:
    kept = sorted({place for row in rows for place, cell in enumerate(row) if cell})
    return [[row[place] for place in kept[: bisect_left(kept, len(row))]] for row in rows]
