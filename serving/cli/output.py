"""Terminal output: tables as text, and JSON for programs."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from parquetry.printing import tell, tell_json, tell_text, visible

NARROWEST_COLUMN = 10
"""characters"""
_GAP = "  "
_BLANKS = re.compile(r"[ \t\r\n]+")
_NAMES = frozenset({"filename", "namespace", "path", "source", "uri"})
"""columns where white space is significant"""


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    tell_json(plain(value), 2 if sys.stdout.isatty() else None)


def print_json_line(value: Any) -> None:
    """Print one JSON object on a single line, for JSON-lines output."""
    tell_json(plain(value))


def confirmed(question: str, *, default: bool = False, err: bool = False) -> bool:
    """Ask the user at the terminal to confirm."""
    return bool(typer.confirm(visible(question), default=default, err=err))


def plain(value: Any) -> Any:
    """Convert a value of a row to a JSON type."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no number for NaN or infinity.
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def terminal_width() -> int:
    """Return the terminal's width in characters: 80 without a terminal, at least 20."""
    return max(shutil.get_terminal_size().columns, 2 * NARROWEST_COLUMN)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int = 60) -> None:
    """Print an aligned table of plain text; on a terminal, fit it to the width and wrap long cells."""
    values = [list(row) for row in rows]
    cells = [[_cell(*cell, width) for cell in zip(row, columns, strict=True)] for row in values]
    heads = [visible(name) for name in columns]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(heads)]
    if not sys.stdout.isatty():
        for row in [heads, ["-" * size for size in widths], *cells]:
            shown = (value.ljust(size) for value, size in zip(row, widths, strict=True))
            tell_text(_GAP.join(shown).rstrip())
        return
    limit = terminal_width()
    if sum(min(size, NARROWEST_COLUMN) for size in widths) + len(_GAP) * (len(widths) - 1) > limit:
        _print_records(heads, cells, limit)
    else:
        numbers = [all(map(_is_number, column)) for column in zip(*values, strict=True)] or [False] * len(columns)
        _print_fitted(heads, cells, numbers, limit)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _print_fitted(columns: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[bool], limit: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="none")
    for name, is_number in zip(columns, numbers, strict=True):
        table.add_column(
            Text(name),
            justify="right" if is_number else "left",
            overflow="fold",
            min_width=min(len(name), NARROWEST_COLUMN),
        )
    for row in cells:
        table.add_row(*map(Text, row))
    Console(width=limit, highlight=False).print(table)


def _print_records(columns: Sequence[str], cells: Sequence[Sequence[str]], limit: int) -> None:
    """Print rows with more columns than fit on a line: one value per line."""
    indent = max(map(len, columns)) + len(_GAP)
    for number, row in enumerate(cells):
        if number:
            tell()
        for name, value in zip(columns, row, strict=True):
            tell_text(f"{name.ljust(indent)}{_cut(value, max(limit - indent, NARROWEST_COLUMN))}".rstrip())


def _cell(value: Any, column: str, width: int) -> str:
    text = "" if value is None else str(plain(value))
    return _cut(visible(text if column in _NAMES else " ".join(_BLANKS.split(text)).strip()), width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
