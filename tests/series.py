"""Long series, such as kills at every file operation: each run tries a part of them, another part each day.

`PARQUETRY_SERIES=all` tries everything; the number of a day tries its part once more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

Member = TypeVar("Member")
VARIABLE, ALL = "PARQUETRY_SERIES", "all"


def choose_day() -> None:
    """Have this process and its children try the part of today, unless the environment names another."""
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(datetime.now(UTC).toordinal())


def part_of(series: Sequence[Member], most: int) -> list[Member]:
    """Return the members to try: the first, the last, and others that lie evenly between them.

    Args:
        series: all members, in their order.
        most: members to try, 3 or more.
    """
    step = 1 if len(series) <= most else -(-(len(series) - 2) // (most - 2))
    day = turn(step)
    return list(series) if day is None else [series[0], *series[1 + day : -1 : step], series[-1]]


def turn(days: int) -> int | None:
    """Return which of so many days in a row this one is, counted from 0; None if everything is tried."""
    choose_day()
    chosen = os.environ[VARIABLE]
    return None if chosen == ALL or days == 1 else int(chosen) % days
