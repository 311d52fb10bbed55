"""Tables in XML as tables of a web page: those of CALS (DocBook, JATS, DITA), of HTML, and rows of cells."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from parquetry.extract.html.tables import MAX_COLUMNS
from parquetry.extract.xml.names import local_name, spaced_text

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TABLES = frozenset({"table", "informaltable", "simpletable"})
_ROWS = frozenset({"tr", "row", "strow", "sthead", "table-row"})
_CELLS = frozenset({"td", "th", "entry", "stentry", "entrytbl", "cell", "table-cell"})
_PARTS = {"thead": 0, "tbody": 1, "tfoot": 2}
"""parts of a table in the order of reading"""
_CAPTIONS = frozenset({"title", "caption", "label"})


def is_table(element: Element) -> bool:
    """Return True if an element is a table by its name and has rows of cells."""
    return _lower(element) in _TABLES and next(_filled(element), None) is not None


def table_html(table: Element) -> str:
    """Return a table as HTML, one for each group of rows with columns of its own."""
    captions = [text for child in table if _lower(child) in _CAPTIONS and (text := spaced_text(child))]
    pieces = [f"<div>{escape(' '.join(captions))}</div>"] if captions else []
    groups = [child for child in table if _lower(child) == "tgroup"] or [table]
    for group in groups:
        columns = _columns(group)
        carried: dict[int, int] = {}
        rows = [_row_html(row, columns, carried, head=head) for row, head in _rows(group)]
        pieces += ["<table>", *rows, "</table>"]
    return "".join(pieces)


def _filled(table: Element) -> Iterator[Element]:
    groups = [child for child in table if _lower(child) == "tgroup"] or [table]
    return (row for group in groups for row, _ in _rows(group) if any(_lower(cell) in _CELLS for cell in row))


def _rows(group: Element) -> Iterator[tuple[Element, bool]]:
    """Yield the rows of a group, and whether each names the columns."""
    parts = [(_PARTS.get(_lower(child), 1), child) for child in group]
    for place, part in sorted(parts, key=lambda each: each[0]):
        if _lower(part) in _ROWS:
            yield part, _lower(part) == "sthead"
        elif _lower(part) in _PARTS:
            yield from ((row, place == 0) for row in part if _lower(row) in _ROWS)


def _columns(group: Element) -> dict[str, tuple[int, int]]:
    """Map each name of a column, or of a span of columns, to its first and last column, from 0."""
    columns: dict[str, tuple[int, int]] = {}
    number = 0
    for child in group:
        kind = _lower(child)
        if kind == "colspec":
            number = _number(child.get("colnum"), number + 1)
            columns[child.get("colname") or ""] = (number - 1, number - 1)
        elif kind == "spanspec":
            columns[child.get("spanname") or ""] = _between(child, columns)
    columns.pop("", None)
    return columns


def _between(element: Element, columns: dict[str, tuple[int, int]]) -> tuple[int, int]:
    first = columns.get(element.get("namest") or "", (0, 0))[0]
    return first, max(first, columns.get(element.get("nameend") or "", (first, first))[1])


def _row_html(row: Element, columns: dict[str, tuple[int, int]], carried: dict[int, int], *, head: bool) -> str:
    """Write a row; `carried` maps a column to the rows below that its cell covers."""
    pieces = []
    column = 0

    def free(column: int) -> int:
        while column < MAX_COLUMNS and carried.get(column):
            carried[column] -= 1
            column += 1
        return column

    for cell in row:
        name = _lower(cell)
        if name not in _CELLS:
            continue
        column = free(column)
        first, across = _place(cell, columns)
        first = min(first or 0, MAX_COLUMNS)
        while column < first:
            empty = next((other for other in range(column, first) if carried.get(other)), first) - column
            pieces.append(f"<td colspan={empty}></td>")
            column = free(column + empty)
        down = _number(cell.get("rowspan"), 0) or _number(cell.get("morerows"), 0) + 1
        tag = "th" if head or name == "th" else "td"
        pieces.append(f"<{tag} colspan={across} rowspan={down}>{escape(spaced_text(cell))}</{tag}>")
        for covered in range(column, min(column + across, MAX_COLUMNS)):
            carried[covered] = down - 1
        column += across
    free(column)
    line = f"<tr>{''.join(pieces)}</tr>"
    return f"<thead>{line}</thead>" if head else line


def _place(cell: Element, columns: dict[str, tuple[int, int]]) -> tuple[int | None, int]:
    """Return the column in which a cell says to begin, if it does, and the number of columns that it spans."""
    if "namest" in cell.attrib:
        first, last = _between(cell, columns)
        return first, min(last - first + 1, MAX_COLUMNS)
    named = columns.get(cell.get("spanname") or cell.get("colname") or "")
    if named is not None:
        return named[0], min(named[1] - named[0] + 1, MAX_COLUMNS)
    return None, max(1, min(_number(cell.get("colspan"), 1), MAX_COLUMNS))


def _number(value: str | None, default: int) -> int:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 6 else default


def _lower(element: Element) -> str:
    return local_name(element).lower()
