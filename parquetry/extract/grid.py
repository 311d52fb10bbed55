"""Finds the tables, captions and column names in a grid of cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from parquetry.extract.builder import TextBuilder

MAX_HEADER_ROWS = 4
"""number of header rows above which column names are taken for data"""
MAX_NAME_CHARACTERS = 120
"""characters above which a cell is a sentence, not a column name"""

_CURRENCY = r"(?:[$€£¥₹₽₩₺]|(?-i:EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|INR|BRL|kr|zł|Kč|Ft)\b)"
_NUMBER = re.compile(
    rf"[-+(]?\s?{_CURRENCY}?\s?[-+(]?\d[\d.,'\s]*(e[-+]?\d+)?\)?\s?(?:%|{_CURRENCY})?|\(?{_CURRENCY}?\s?[-–—]\)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
_TELLING = re.compile(r"[\d@]")
_COMPARED = 50
"""rows below the first that it is compared with"""
_WIDE = 3
"""columns up to which a row of two cells is no caption"""
_YEAR = re.compile(r"(19|20)\d\d")
_PERIOD = re.compile(r"(19|20)\d\d([-/.](0?[1-9]|1[0-2])([-/.]\d\d?)?)?")
"""a year, a month (`2024-05`) or a day"""

Row = list[str]


def add_grid(
    builder: TextBuilder, grid: dict[int, Row], *, caption_known: str = "", bold: Collection[int] = ()
) -> None:
    """Add the content of a grid of cells: its tables, and the captions and notes around them as text.

    An empty row ends a table, and so does a row of column names, below a caption or in bold. Tables side by side are
    kept apart. Rows with a single filled cell of several are captions above a table or notes below it.

    Args:
        builder: receives the text and tables.
        grid: 0-based row number -> the row's cells as text; all rows have equal length, empty rows are omitted.
        caption_known: a caption already added, for example as a heading.
        bold: numbers of the rows in bold.
    """
    for block in _blocks(grid, bold):
        strong = [number in bold for number in block]
        whole = [grid[number] for number in block]
        for columns in _side_by_side(whole):
            # A copy of a wide sheet would cost as much as the sheet.
            rows = whole if len(columns) == len(whole[0]) else [[row[column] for column in columns] for row in whole]
            kept = [place for place, row in enumerate(rows) if any(row)]
            _add_block(builder, [rows[place] for place in kept], [strong[place] for place in kept], caption_known)


def is_caption(row: Row) -> bool:
    """Return True if a row has exactly one filled cell."""
    return sum(map(bool, row)) == 1


def looks_like_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first row of a table names its columns.

    Names are mostly present, mostly distinct, short, and not numbers (years may be column names), and do not look like
    the values below them.

    Args:
        rows: at least one row of cells as text.
    """
    first = rows[0]
    filled = [cell for cell in first if cell.strip()]
    if len(rows) < 2 or len(filled) * 2 < len(first) or any(len(cell) > MAX_NAME_CHARACTERS for cell in filled):
        return False
    numbers = [cell for cell in filled if is_number(cell)]
    if len(numbers) * 4 > len(filled) or len(set(filled)) * 2 <= len(filled):
        return False
    return not any(_is_one_of(cell, rows[1:], column) for column, cell in enumerate(first))


def are_periods_over_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if the first row names columns of numbers by periods, and all others by words.

    The first column, of labels, may be without a name.

    Args:
        rows: at least one row of cells as text; may be of different length.
    """
    first = [cell.strip() for cell in rows[0]]
    named = first[1:] if first and not first[0] else first
    if not named or len(set(named)) < len(named) or any(not cell or len(cell) > MAX_NAME_CHARACTERS for cell in named):
        return False
    columns = [column for column, cell in enumerate(first) if _PERIOD.fullmatch(cell)]
    if not columns or any(is_number(cell) for column, cell in enumerate(first) if column not in columns):
        return False
    return all(_holds_numbers(rows[1:], column) for column in columns)


def _holds_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    below = [row[column].strip() for row in rows[:_COMPARED] if column < len(row) and row[column].strip()]
    return bool(below) and 2 * sum(is_number(cell) and not _PERIOD.fullmatch(cell) for cell in below) > len(below)


def _is_one_of(cell: str, rows: Sequence[Sequence[str]], column: int) -> bool:
    """Return True if a cell with digits or an address has the form of nearly all cells below: `A-17`, `5 May 2024`."""
    if not _TELLING.search(cell) or len(cell) > MAX_NAME_CHARACTERS:
        return False
    below = [row[column] for row in rows[:_COMPARED] if column < len(row) and row[column]]
    year = _YEAR.fullmatch(cell)
    alike = sum(bool(_YEAR.fullmatch(other)) if year else _form(other) == _form(cell) for other in below)
    return len(below) > 1 and alike * 10 >= 8 * len(below)


def _form(cell: str) -> str:
    """Reduce each run of letters and of digits to one sign."""
    return _LETTERS.sub("a", _DIGITS.sub("0", cell[:MAX_NAME_CHARACTERS]))


def _blocks(grid: dict[int, Row], bold: Collection[int]) -> list[list[int]]:
    """Split the numbers of the rows at empty rows, except between column names and their numbers, and at new names."""
    numbers = sorted(grid)
    blocks = [[numbers[0]]]
    for place, (before, number) in enumerate(pairwise(numbers), start=1):
        row = grid[number]
        apart = number > before + 1
        if apart and number == before + 2 and _are_names_of([grid[other] for other in blocks[-1]], row):
            apart = False
        strong = number in bold and before not in bold
        if not apart and (strong or is_caption(row)):
            next_ones = enumerate(numbers[place + 1 : place + 3], start=1)
            following = [grid[other] for step, other in next_ones if other == number + step]
            apart = _starts_table(grid[before], row, following, bold=strong)
        if apart:
            blocks.append([])
        blocks[-1].append(number)
    return blocks


def _starts_table(before: Row, row: Row, following: list[Row], *, bold: bool) -> bool:
    """Return True if a row below data is the caption of another table, or its column names in bold."""
    if not _is_data(before):
        return False
    if is_caption(row):
        return len(following) == 2 and _are_names(following[0]) and _is_data(following[1])
    return bold and _are_names(row) and bool(following) and _is_data(following[0])


def _are_names(row: Row) -> bool:
    filled = [cell for cell in row if cell]
    return len(filled) > 1 and not any(is_number(cell) or len(cell) > MAX_NAME_CHARACTERS for cell in filled)


def _side_by_side(rows: list[Row]) -> list[list[int]]:
    """Return the columns of each table in a block; an empty column stands between tables.

    Columns of figures are divided by empty ones as well: each table has names of its own, and labels in its first
    column, or begins or ends in another row than its neighbour.
    """
    used = _used_columns(rows)
    groups: list[list[int]] = []
    for column in used:
        if not groups or column > groups[-1][-1] + 1:
            groups.append([])
        groups[-1].append(column)
    if len(groups) < 2 or any(len(group) < 2 for group in groups):
        return [used]
    extents = []
    for group in groups:
        places = [place for place, row in enumerate(rows) if sum(bool(row[column]) for column in group) > 1]
        table = [[rows[place][column] for column in group] for place in places]
        if len(table) < 2 or not looks_like_names(table):
            return [used]
        labels = [row[0] for row in table[1:] if row[0]]
        labelled = len(labels) * 2 > len(table) - 1 and sum(map(is_number, labels)) * 2 < len(labels)
        extents.append((places[0], places[-1], labelled))
    own = [labelled or (first, last) != extents[0][:2] for first, last, labelled in extents]
    return groups if all(own[1:]) else [used]


def _are_names_of(rows: list[Row], row: Row) -> bool:
    """Return True if rows without any number are the column names of a row of numbers."""
    names = [above for above in rows if not is_caption(above)]
    if not 0 < len(names) <= MAX_HEADER_ROWS or not _is_data(row):
        return False
    if any(_is_data(above) or max(map(len, above)) > MAX_NAME_CHARACTERS for above in names):
        return False
    valued = [column for column, cell in enumerate(row) if cell and is_number(cell)]
    return sum(any(above[column] for above in names) for column in valued) * 2 > len(valued)


def _add_block(builder: TextBuilder, rows: list[Row], bold: list[bool], caption_known: str) -> None:
    start, end = 0, len(rows)
    if len(_used_columns(rows)) > 1:
        start = _captions(rows)
        while end > start and is_caption(rows[end - 1]):
            end -= 1
    for row in rows[:start]:
        caption = " ".join(filter(None, row))
        if caption != caption_known:
            builder.text(caption)
    if start < end:
        _add_table(builder, rows[start:end], bold[start:end])
    for row in rows[end:]:
        builder.text("".join(row))


def _captions(rows: list[Row]) -> int:
    """Return the number of rows above the table: with one filled cell, or with two above wider column names."""
    width = len(_used_columns(rows))
    for start, row in enumerate(rows):
        filled = sum(map(bool, row))
        if filled != 1 and not (filled == 2 and width > _WIDE and _is_title(rows, start, width)):
            return start
    return len(rows)


def _is_title(rows: list[Row], place: int, width: int) -> bool:
    """Return True for a row like `Income statement`, `in millions` above the names of more columns."""
    row = rows[place]
    below = rows[place + 1 : place + 1 + MAX_HEADER_ROWS]
    wider = any(_are_names(names) and sum(map(bool, names)) * 2 > width for names in below)
    return bool(row[0]) and wider and not _is_data(row)


def _add_table(builder: TextBuilder, rows: list[Row], bold: list[bool]) -> None:
    columns = _used_columns(rows)
    table = [[row[column] for column in columns] for row in rows]
    if len(columns) == 1:
        builder.text("\n".join(row[0] for row in table))
        return
    table, named = with_names(table, bold)
    builder.table(table, header=named)


def with_names(table: list[Row], bold: Sequence[bool] = ()) -> tuple[list[Row], bool]:
    """Return the rows of a table with the names of its columns in one row, and whether the first row has names.

    Args:
        table: cells as text; all rows have equal length.
        bold: for each row, True if it is in bold; may be shorter.
    """
    depth = _bold_depth(table, list(bold)) or _header_depth(table)
    if depth > 1:
        table = [_joined_names(table[:depth]), *table[depth:]]
    return table, depth > 0


def _bold_depth(table: list[Row], bold: list[bool]) -> int:
    """Return the number of bold rows at the top that name the columns; 0 if boldness does not say."""
    depth = next((place for place, strong in enumerate(bold) if not strong), len(bold))
    if not 0 < depth <= min(MAX_HEADER_ROWS, len(table) - 1):
        return 0
    return 0 if any(_is_data(row) or is_caption(row) for row in table[:depth]) else depth


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
    return sum(map(is_number, filled)) * 3 >= len(filled) > 0


def is_number(cell: str) -> bool:
    """Return True for a number, with or without signs of currency and percent, that is not a year."""
    return bool(_NUMBER.fullmatch(cell)) and not _YEAR.fullmatch(cell)


def _used_columns(rows: list[Row]) -> list[int]:
    return [column for column in range(len(rows[0])) if any(row[column] for row in rows)]
