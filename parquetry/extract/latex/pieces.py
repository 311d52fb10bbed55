"""A table and a line that are being read, and the pairs of braces in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from parquetry.extract.grid import are_periods_over_numbers

_BRACE = re.compile(r"\\.|%[^\n]*|[{}]", re.DOTALL)


@dataclass(slots=True)
class OpenTable:
    """A table that is being read, and the text around it."""

    outside: list[str]
    rows: list[list[str]] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    is_headed: bool = False
    """True if a rule follows the first row"""

    @property
    def has_names(self) -> bool:
        """True if the first row names the columns."""
        return len(self.rows) > 1 and (self.is_headed or are_periods_over_numbers(self.rows))

    def note_rule(self) -> None:
        """Note a horizontal rule."""
        self.is_headed |= len(self.rows) == 1 and not self.row

    def end_row(self, cell: str) -> None:
        """End a row with its last cell; rows without text are left out."""
        self.row.append(cell)
        if any(self.row):
            self.rows.append(self.row)
        self.row = []


class ArgumentLine:
    """Receives the blocks of an argument, which become one line."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def text(self, text: str, *, keep_layout: bool = False) -> None:  # noqa: ARG002 (a line has none)
        """Add a block of text."""
        self.pieces.append(text)

    def heading(self, level: int, title: str) -> None:  # noqa: ARG002 (a line has no levels)
        """Add a heading."""
        self.pieces.append(title)

    def table(self, rows: list[list[str]], *, header: bool = True) -> None:  # noqa: ARG002 (a line has no tables)
        """Add a table."""
        self.pieces += [" ".join(row) for row in rows]


def closing_braces(text: str) -> dict[int, int]:
    """Return the place of the closing brace for that of each opening one."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for found in _BRACE.finditer(text):
        if found[0] == "{":
            waiting.append(found.start())
        elif found[0] == "}" and waiting:
            closing[waiting.pop()] = found.start()
    return closing
