"""Tables of a mail's HTML version that its plain version has taken apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parquetry.extract.html.reader import rows_of_tables

_MOST_ROWS = 50
"""rows that are looked for"""
_MOST_CHARACTERS = 200_000
"""characters of the plain version in which they are looked for, and of an HTML version that is searched for tables"""
_TABLE = re.compile(r"<table\b", re.IGNORECASE)


def keeps_rows(plain: Sequence[str], rich: Sequence[str]) -> bool:
    """Return True unless most rows of the tables in HTML are no lines of the plain version.

    Mail programs write each cell of a table on a line of its own, so that no line tells which value is whose.

    Args:
        plain: texts of the plain version.
        rich: texts of the same in HTML.
    """
    rows: list[list[str]] = []
    for text in rich:
        if len(text) <= _MOST_CHARACTERS and _TABLE.search(text):
            rows += rows_of_tables(text, _MOST_ROWS - len(rows))
    rows = [filled for row in rows if len(filled := [" ".join(cell.split()) for cell in row if cell.strip()]) > 1]
    if len(rows) < 2:
        return True
    lines = [" ".join(line.split()) for line in "\n".join(plain)[:_MOST_CHARACTERS].split("\n")]
    kept = sum(any(all(cell in line for cell in row) for line in lines) for row in rows)
    return 2 * kept >= len(rows)
