"""Builds the cells of ruled tables from horizontal and vertical rules. Pure: uses no PDF library."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_NEAR = 3.0
"""points between rules that are one, and between the end of a rule and another that it meets"""
_MOST_PAIRS = 10_000
"""pairs of a horizontal and a vertical rule above which a page is a drawing"""
_LEAST = 5.0
"""points of the smallest row or column"""
_COVERED = 0.6
"""share of the side of a cell from which a rule separates it from its neighbour"""
_MOST_ROWS = 200
_MOST_COLUMNS = 40
_MOST_PLACES = 2_500
"""rows times columns"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal or vertical line, in points."""

    at: float
    """height of a horizontal rule; distance from the left of a vertical one"""
    low: float
    """left, or lower, end"""
    high: float
    """right, or upper, end"""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The cells of one ruled table; rows from the top."""

    across: tuple[float, ...]
    """edges of the columns from left to right, in points"""
    down: tuple[float, ...]
    """edges of the rows from top to bottom, in points"""
    cells: tuple[tuple[int, ...], ...]
    """for each row and column, the number of the cell that covers it"""

    def cell_at(self, x: float, y: float) -> int | None:
        """Return the number of the cell at a point; None outside the table."""
        column = bisect_right(self.across, x) - 1
        row = bisect_right([-edge for edge in self.down], -y) - 1
        if 0 <= column < len(self.across) - 1 and 0 <= row < len(self.down) - 1:
            return self.cells[row][column]
        return None

    def holds(self, y: float) -> bool:
        """Return True if a height is between the upper and the lower edge."""
        return self.down[-1] < y < self.down[0]


def lattices(horizontal: Sequence[Rule], vertical: Sequence[Rule]) -> list[Lattice]:
    """Return the tables of a page whose rules cross: at least two rows and two columns, all cells rectangles.

    The outermost rules may be missing: then the others end there.
    """
    rows, columns = _merged(horizontal), _merged(vertical)
    if len(rows) * len(columns) > _MOST_PAIRS:
        return []
    found = (_lattice(*group) for group in _crossing(rows, columns))
    return sorted((lattice for lattice in found if lattice is not None), key=lambda lattice: -lattice.down[0])


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Join rules that continue or double each other; those at one place get the same coordinate."""
    groups: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if groups and rule.at - groups[-1][0].at <= _NEAR:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    merged: list[Rule] = []
    for group in groups:
        at = sum(rule.at for rule in group) / len(group)
        spans: list[list[float]] = []
        for rule in sorted(group, key=lambda rule: rule.low):
            if spans and rule.low - spans[-1][1] <= _NEAR:
                spans[-1][1] = max(spans[-1][1], rule.high)
            else:
                spans.append([rule.low, rule.high])
        merged += [Rule(at, low, high) for low, high in spans]
    return merged


def _crossing(rows: Sequence[Rule], columns: Sequence[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Group rules that are connected by crossings."""
    group_of = list(range(len(rows) + len(columns)))

    def root(place: int) -> int:
        while group_of[place] != place:
            group_of[place] = group_of[group_of[place]]
            place = group_of[place]
        return place

    for i, row in enumerate(rows):
        for j, column in enumerate(columns, start=len(rows)):
            meets = row.low - _NEAR <= column.at <= row.high + _NEAR
            if meets and column.low - _NEAR <= row.at <= column.high + _NEAR:
                group_of[root(i)] = root(j)
    groups: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for place, rule in enumerate([*rows, *columns]):
        groups.setdefault(root(place), ([], []))[place >= len(rows)].append(rule)
    return [group for group in groups.values() if len(group[0]) > 1 and group[1]]


def _lattice(rows: Sequence[Rule], columns: Sequence[Rule]) -> Lattice | None:
    across = _edges([rule.at for rule in columns], [rule.low for rule in rows], [rule.high for rule in rows])
    up = _edges([rule.at for rule in rows], [rule.low for rule in columns], [rule.high for rule in columns])
    height, width = len(up) - 1, len(across) - 1
    if not 2 <= height <= _MOST_ROWS or not 2 <= width <= _MOST_COLUMNS or height * width > _MOST_PLACES:
        return None
    slots = [(row, column) for row in range(height) for column in range(width)]
    joined = {slot: slot for slot in slots}

    def root(slot: tuple[int, int]) -> tuple[int, int]:
        while joined[slot] != slot:
            joined[slot] = joined[joined[slot]]
            slot = joined[slot]
        return slot

    beside = [[rule for rule in columns if abs(rule.at - edge) < _LEAST] for edge in across]
    below = [[rule for rule in rows if abs(rule.at - edge) < _LEAST] for edge in up]
    for row, column in slots:
        if column and not _separate(beside[column], up[row], up[row + 1]):
            joined[root((row, column))] = root((row, column - 1))
        if row and not _separate(below[row], across[column], across[column + 1]):
            joined[root((row, column))] = root((row - 1, column))
    numbers: dict[tuple[int, int], int] = {}
    cells = [
        [numbers.setdefault(root((row, column)), len(numbers)) for column in range(width)] for row in range(height)
    ]
    if not _are_rectangles(cells):
        return None
    return Lattice(tuple(across), tuple(reversed(up)), tuple(tuple(row) for row in reversed(cells)))


def _edges(inner: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[float]:
    """Return the edges of columns or rows; the outermost may be missing where other rules reach beyond the last one."""
    edges: list[float] = []
    for edge in sorted({*inner, min(low), max(high)}):
        if not edges or edge - edges[-1] >= _LEAST:
            edges.append(edge)
    return edges


def _separate(rules: Sequence[Rule], low: float, high: float) -> bool:
    covered = sum(max(0.0, min(rule.high, high) - max(rule.low, low)) for rule in rules)
    return covered >= _COVERED * (high - low)


def _are_rectangles(cells: Sequence[Sequence[int]]) -> bool:
    extents: dict[int, list[int]] = {}
    for row, numbers in enumerate(cells):
        for column, number in enumerate(numbers):
            top, left, _, right, size = extents.get(number, [row, column, row, column, 0])
            extents[number] = [top, min(left, column), row, max(right, column), size + 1]
    return all((bottom - top + 1) * (right - left + 1) == size for top, left, bottom, right, size in extents.values())
