"""Line numbers of keys in a settings file, for messages that name the line to change."""

from __future__ import annotations

import re


def lines_of(text: str, table: str, key: str, count: int) -> list[int]:
    """Return the lines of a key in the tables of an array.

    Args:
        text: content of a valid TOML file.
        table: name of the array, as in `[[table]]`.
        key: key to find in each table.
        count: number of tables.

    Returns:
        Line numbers, 1-based, in the order of the tables; the line of the table's header if the key is not found, and 1
        for every table if the array is written in another form.
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
