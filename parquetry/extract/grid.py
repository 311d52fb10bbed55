"""Finds the tables, captions and column names in a grid of cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from parquetry.extract.builder import TextBuilder

MAX_HEADER_ROWS = 4
"""number of header rows above which column names are taken for data"""
MAX_NAME_CHARACTERS = 120
"""characters above which a cell is a sentence, not a column name"""

_NUMBER = re.compile(r"[-+(]?\s?[$€£¥]?\s?\d[\d.,'\s]*(e[-+]?\d+)?\)?\s?[%$€£¥]?|[-–—]", re.IGNORECASE)
_YEAR = re.compile(r"(19|20)\d\d")

Row = list[str]


def add_grid(builder: TextBuilder, grid: dict[int, Row], *, caption_known: str = "") -> None:
    """Add the content of a grid of cells: its tables, and the captions and notes around them as text.

    An empty row ends a table; rows with a single filled cell of several are captions above it or notes below it.

    Args:
        builder: receives the text and tables.
        grid: 0-based row number -> the row's cells as text; all rows have equal length, empty rows are omitted.
        caption_known: a caption already added, for example as a heading.
    """
    for block in _blocks(grid):
        _add_block(builder, block, caption_known)


def is_caption(row: Row) -> bool:
    """Return True if a row has exactly one filled cell."""
    return sum(map(bool, row)) == 1


def looks_like_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first row of a table names its columns.

    Names are mostly present, mostly distinct, short, and not numbers (years may be column names).

    Args:
        rows: at least one row of cells as text.
    """
    first = rows[0]
    filled = [cell for cell in first if cell.strip()]
    if len(rows) < 2 or len(filled) * 2 < len(first) or any(len(cell) > MAX_NAME_CHARACTERS for cell in filled):
        return False
    numbers = [cell for cell in filled if _is_number(cell)]
    return len(numbers) * 4 <= len(filled) and len(set(filled)) * 2 > len(filled)


def _blocks(grid: dict[int, Row]) -> list[list[Row]]:
    """Split the rows at empty rows, except between column names and their numbers."""
    numbers = sorted(grid)
    blocks = [[grid[numbers[0]]]]
    for before, number in pairwise(numbers):
        row = grid[number]
        if number > before + 1 and not (number == before + 2 and _are_names_of(blocks[-1], row)):
            blocks.append([])
        blocks[-1].append(row)
    return blocks


def _are_names_of(rows: list[Row], row: Row) -> bool:
    """Return True if rows without any number are the column names of a row of numbers."""
    names = [above for above in rows if not is_caption(above)]
    if not 0 < len(names) <= MAX_HEADER_ROWS or not _is_data(row):
        return False
    if any(_is_data(above) or max(map(len, above)) > MAX_NAME_CHARACTERS for above in names):
        return False
    valued = [column for column, cell in enumerate(row) if cell and _is_number(cell)]
    return sum(any(above[column] for above in names) for column in valued) * 2 > len(valued)


def _add_block(builder: TextBuilder, rows: list[Row], caption_known: str) -> None:
    start, end = 0, len(rows)
    if len(_used_columns(rows)) > 1:
        while start < end and is_caption(rows[start]):
            start += 1
        while end > start and is_caption(rows[end - 1]):
            end -= 1
    for row in rows[:start]:
        caption = "".join(row)
        if caption != caption_known:
            builder.text(caption)
    if start < end:
        _add_table(builder, rows[start:end])
    for row in rows[end:]:
        builder.text("".join(row))


def _add_table(builder: TextBuilder, rows: list[Row]) -> None:
    columns = _used_columns(rows)
    table = [[row[column] for column in columns] for row in rows]
    if len(columns) == 1:
        builder.text("\n".join(row[0] for row in table))
        return
    depth = _header_depth(table)
    if depth > 1:
        table[:depth] = [_joined_names(table[:depth])]
    builder.table(table, header=depth > 0)


def _header_depth(table: list[Row]) -> int:
    """Return the number of top rows that name the columns."""
    first_data = next((number for number, row in enumerate(table[: MAX_HEADER_ROWS + 1]) if _is_data(row)), 0)
    first = table[0]
    grouped = "" in first[1:] or len(set(first)) < len(first)
    if first_data > 1 and grouped and all(max(map(len, row)) <= MAX_NAME_CHARACTERS for row in table[:first_data]):
        return first_data
    return int(looks_like_names(table))


def _joined_names(rows: list[Row]) -> Row:
    """Combine several rows of names to one name per column: `2023 / Sales`."""
    return [" / ".join(dict.fromkeys(filter(None, cells))) for cells in zip(*rows, strict=True)]


def _is_data(row: Row) -> bool:
    """Return True if at least a third of the filled cells after the first are numbers."""
    filled = [cell for cell in row[1:] if cell]
    return sum(map(_is_number, filled)) * 3 >= len(filled) > 0


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell)) and not _YEAR.fullmatch(cell)


def _used_columns(rows: list[Row]) -> list[int]:
    return [column for column in range(len(rows[0])) if any(row[column] for row in rows)]
