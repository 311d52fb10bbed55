"""The ruled tables of one document: found on each page, and written among its lines once all pages are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parquetry.extract.layout import Line
from parquetry.extract.pdf.engine import page_lines
from parquetry.extract.pdf.lattice import Lattice, lattices
from parquetry.extract.pdf.rules import page_rules
from parquetry.extract.pdf.tables import BLOCKS, Names, with_tables
from parquetry.extract.spreading import Spreading
from parquetry.plural import counted

_MOST_RULES = 100_000
"""horizontal and vertical rules of a document that are looked at for tables"""


class RuledTables:
    """The ruled tables of a document.

    Args:
        warnings: of the document; receives what is not written as a table because there is too much of it.
    """

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._found: dict[int, list[Lattice]] = {}
        """0-based page -> its tables, from the top; pages without are left out"""
        self._rules_left = _MOST_RULES
        self.written = 0
        """number of tables written in Markdown; one that goes on over pages counts on each"""

    def read_lines(self, page: Any, index: int) -> tuple[list[Line], int]:
        """Return what `page_lines` does; lines in tables have their pieces.

        Args:
            page: a `pypdfium2.PdfPage`.
            index: of the page, from 0.
        """
        tables = self._search(page, index)
        lines, unmapped = page_lines(page, tables)
        if any(line.pieces for line in lines):
            self._found[index] = tables
        return lines, unmapped

    def _search(self, page: Any, index: int) -> list[Lattice]:
        """Return the tables of a page, until the document has more rules than can be looked at."""
        if self._rules_left < 0:
            return []
        horizontal, vertical = page_rules(page)
        self._rules_left -= len(horizontal) + len(vertical)
        if self._rules_left < 0:
            self._warnings.append(f"tables from page {index + 1} on stay lines of text: too many rules are drawn")
            return []
        return lattices(horizontal, vertical)

    def write(self, pages: list[list[Line]], before: Sequence[Sequence[Line]]) -> None:
        """Replace the lines of tables by their rows in Markdown, where the rows are certain.

        Args:
            pages: lines that are left of each page; changed.
            before: all lines of each page.
        """
        spreading = Spreading()
        names: Names | None = None
        last = -1
        for index, found in self._found.items():
            above = names if last == index - 1 else None
            pages[index], names = with_tables(pages[index], before[index], found, spreading, above)
            last = index
            self.written += len({line.block // BLOCKS for line in pages[index] if line.block is not None})
        if spreading.refused:
            spread = counted(spreading.refused, "merged cell is", "merged cells are")
            self._warnings.append(f"{spread} not spread over all columns and rows: too much text for the document")
