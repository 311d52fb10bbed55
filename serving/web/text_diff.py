"""The difference of two texts, line by line, in bounded time. Pure.

Source: E. Myers, An O(ND) difference algorithm and its variations (1986), given up where the texts differ too much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

MOST_LINES = 10_000
"""lines of each text that are compared"""
MOST_DIFFERENCES = 200
"""lines that may differ; beyond, everything between the common beginning and end counts as replaced"""
CONTEXT = 3
"""equal lines that are shown before and after a difference"""
MOST_SHOWN = 2_000
"""lines that are shown"""
LONGEST_LINE = 2_000
"""characters of a line that are shown"""
Kind = Literal["same", "old", "new", "gap"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference, or a gap between two of them."""

    kind: Kind
    text: str
    """of a gap, empty"""
    skipped: int = 0
    """equal lines that a gap stands for"""


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The difference of two texts."""

    lines: tuple[DiffLine, ...]
    added: int
    """lines of the newer text alone"""
    removed: int
    """lines of the older text alone"""
    is_cut: bool
    """True if more lines would follow, or were not compared"""


def diff(old: str, new: str) -> TextDiff:
    """Compare two texts."""
    before, after = old.splitlines(), new.splitlines()
    cut = max(len(before), len(after)) > MOST_LINES
    marked = list(_edits(before[:MOST_LINES], after[:MOST_LINES]))
    shown = [DiffLine(each.kind, each.text[:LONGEST_LINE], each.skipped) for each in _without_distant(marked)]
    return TextDiff(
        tuple(shown[:MOST_SHOWN]),
        sum(each.kind == "new" for each in marked),
        sum(each.kind == "old" for each in marked),
        cut or len(shown) > MOST_SHOWN,
    )


def _without_distant(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Yield lines with gaps for the equal ones that are not near a difference."""
    runs = [(is_same, list(run)) for is_same, run in groupby(lines, key=lambda line: line.kind == "same")]
    for place, (is_same, run) in enumerate(runs):
        head = CONTEXT if place else 0
        tail = CONTEXT if place < len(runs) - 1 else 0
        skipped = len(run) - head - tail
        if not is_same or skipped <= 1:
            yield from run
            continue
        yield from run[:head]
        yield DiffLine("gap", "", skipped)
        yield from run[len(run) - tail :]


def _edits(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    yield from (DiffLine("same", line) for line in old[:first])
    yield from _middle(old[first : len(old) - last], new[first : len(new) - last])
    yield from (DiffLine("same", line) for line in old[len(old) - last :])


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    # Numbers are compared at once, long lines are not.
    numbers: dict[str, int] = {}
    before, after = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (old, new))
    trace = _furthest(before, after)
    if trace is None:
        yield from (DiffLine("old", line) for line in old)
        yield from (DiffLine("new", line) for line in new)
        return
    found: list[DiffLine] = []
    x, y = len(old), len(new)
    for steps in range(len(trace) - 1, 0, -1):
        reached, diagonal = trace[steps], x - y
        previous = diagonal + 1 if _goes_down(reached, diagonal, steps) else diagonal - 1
        start = reached[previous]
        while x > start and y > start - previous:
            x, y = x - 1, y - 1
            found.append(DiffLine("same", old[x]))
        if x == start:
            y -= 1
            found.append(DiffLine("new", new[y]))
        else:
            x -= 1
            found.append(DiffLine("old", old[x]))
    yield from (DiffLine("same", line) for line in old[:x])
    yield from reversed(found)


def _goes_down(reached: Mapping[int, int], diagonal: int, steps: int) -> bool:
    return diagonal == -steps or (diagonal != steps and reached[diagonal - 1] < reached[diagonal + 1])


def _furthest(old: Sequence[int], new: Sequence[int]) -> list[dict[int, int]] | None:
    """Return, for each number of differences, how far each diagonal had come before; None if there are too many."""
    reached: dict[int, int] = {1: 0}
    trace = []
    for steps in range(min(len(old) + len(new), MOST_DIFFERENCES) + 1):
        trace.append(dict(reached))
        for diagonal in range(-steps, steps + 1, 2):
            down = _goes_down(reached, diagonal, steps)
            x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            if x >= len(old) and y >= len(new):
                return trace
    return None
