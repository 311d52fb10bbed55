"""Where in a settings file something is said, for messages that name the line to change."""

from __future__ import annotations

import re


def lines_of(text: str, table: str, key: str, count: int) -> list[int]:
    """The lines on which the tables of an array say a key.

    Args:
        text: of a TOML file that was read without an error.
        table: name of the array, as in `[[table]]`.
        key: of each of its tables.
        count: of its tables.

    Returns:
        Line numbers from 1, in the order of the tables; that of the table's head where the key is not found, and 1 for
        tables that are written in another way.
    """
    head = re.compile(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]")
    said = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    found: list[int] = []
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if head.match(line):
            found.append(number)
            inside = True
        elif line.lstrip().startswith("["):
            inside = False
        elif inside and said.match(line):
            found[-1] = number
            inside = False
    return found if len(found) == count else [1] * count
