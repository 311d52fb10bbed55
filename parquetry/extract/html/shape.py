"""Properties of the elements of a page, collected in one pass over all elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from parquetry.extract.html.nodes import BLOCKS, walk

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_SPAN = 1000
"""maximum columns that a cell spans, as in HTML"""
_CELLS_SQUARED = 1000
"""cells of a row that double its weight: the content finder counts them again for each cell"""
_COPIED = 400
"""characters that weigh as much as one element. When the content finder removes an element, it appends the text after
it to the text before it, one piece at a time; in none of 650 pages does it move more than 210,000 characters this
way."""
_PAIRS = 4000
"""pairs of elements of different kinds that weigh as much as one element: to look for text that it has missed, the
content finder merges the lists of these kinds, comparing each element with all in the lists before"""
_KINDS = {
    "p": 0, "blockquote": 1, "q": 1, "pre": 2, "code": 2, "table": 3, "div": 4, "br": 5, "hr": 5, "ul": 6, "ol": 6,
    "dl": 6,
}  # fmt: skip
"""name of an element -> the list in which the content finder has it"""
_STAYING = frozenset({"br", "hr", "img"})
_ROWS_SPANNED = 100
"""maximum rows that the content finder counts for a cell, even if the table has fewer"""


def span(cell: LexborNode, name: str) -> int:
    """Return the number of columns or rows that a cell spans."""
    value = cell.attributes.get(name) or "1"
    return min(max(int(value), 1), MAX_SPAN) if value.isascii() and value.isdigit() and len(value) < 6 else 1


@dataclass(slots=True)
class Shape:
    """Nesting depth and weight of a page."""

    depth: int = 2
    """levels of nested elements, including the root and the body"""
    weight: int = 0
    """number of elements plus table cells, filled or not"""
    _level: int = 2
    _tables: list[_Table] = field(default_factory=list)
    _texts: list[int] = field(default_factory=lambda: [0])
    """characters after the last element that stays, for each level"""
    _copied: int = 0
    _kinds: list[int] = field(default_factory=lambda: [0] * 7)

    @classmethod
    def of(cls, body: LexborNode) -> Shape:
        shape = cls()
        walk(body, shape._enter, shape._leave)
        shape.weight += shape._copied // _COPIED
        shape.weight += (sum(shape._kinds) ** 2 - sum(count**2 for count in shape._kinds)) // 2 // _PAIRS
        return shape

    def _enter(self, node: LexborNode) -> bool:
        if node.is_text_node:
            self._texts[-1] += len(node.text_content or "")
            return False
        if _may_be_taken_out(node):
            self._copied += self._texts[-1]
        else:
            self._texts[-1] = 0
        self._texts.append(0)
        self._level += 1
        self.depth = max(self.depth, self._level)
        self.weight += 1
        tag = node.tag
        if (kind := _KINDS.get(tag or "")) is not None:
            self._kinds[kind] += 1
        if tag == "table":
            self._tables.append(_Table())
        elif self._tables and tag in ("tr", "td", "th"):
            if tag == "tr":
                self._tables[-1].start_row()
            else:
                self._tables[-1].add(span(node, "colspan"), span(node, "rowspan"))
        return True

    def _leave(self, node: LexborNode) -> None:
        self._level -= 1
        self._texts.pop()
        if node.tag == "table":
            self.weight += self._tables.pop().weight


def _may_be_taken_out(node: LexborNode) -> bool:
    """Return True if the content finder may remove an element: by its tag, as a named block, or as empty."""
    tag = node.tag
    if tag in _STAYING:
        return False
    if node.child is None or tag in _cleaned():
        return True
    return tag in BLOCKS and not node.attributes.keys().isdisjoint(("class", "id"))


@lru_cache(maxsize=1)
def _cleaned() -> frozenset[str]:
    from trafilatura.settings import MANUALLY_CLEANED

    return frozenset(MANUALLY_CLEANED)


@dataclass(slots=True)
class _Table:
    rows: int = 1
    columns: int = 0
    widest: int = 0
    squared: int = 0
    spanned: int = 0

    def start_row(self) -> None:
        self.rows += 1
        self.squared += self.columns**2 // _CELLS_SQUARED
        self.columns = 0

    def add(self, columns: int, rows: int) -> None:
        """Add a cell with its numbers of columns and rows."""
        self.columns += columns
        self.widest = max(self.widest, self.columns)
        self.spanned += columns * min(rows, _ROWS_SPANNED)

    @property
    def weight(self) -> int:
        places = max(self.rows * self.widest, self.spanned)
        return places + self.squared + self.columns**2 // _CELLS_SQUARED


@dataclass(frozen=True, slots=True)
class Blocks:
    """Nesting of blocks and tables in a page."""

    with_blocks: frozenset[int]
    """ids of elements that hold a heading, a table or code"""
    _tables: Mapping[int, int]

    @classmethod
    def of(cls, page: LexborHTMLParser) -> Blocks:
        with_blocks: set[int] = set()
        for node in page.css("h1, h2, h3, h4, h5, h6, table, pre"):
            outer = node.parent
            while outer is not None and outer.mem_id not in with_blocks:
                with_blocks.add(outer.mem_id)
                outer = outer.parent
        return cls(frozenset(with_blocks), _heights(page))

    def tables_below(self, table: LexborNode) -> int:
        """Return the depth of nested tables inside a table."""
        return self._tables.get(table.mem_id, 0)


def _heights(page: LexborHTMLParser) -> dict[int, int]:
    heights: dict[int, int] = {}
    if page.body is None or page.css_first("table table") is None:
        return heights
    below = [0]

    def enter(node: LexborNode) -> bool:
        if node.tag == "table":
            below.append(0)
        return not node.is_text_node

    def leave(node: LexborNode) -> None:
        if node.tag == "table":
            heights[node.mem_id] = height = below.pop()
            below[-1] = max(below[-1], height + 1)

    walk(page.body, enter, leave)
    return heights
