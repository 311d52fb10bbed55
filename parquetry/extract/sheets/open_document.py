"""Cells of ODS workbooks as they are shown, with comments and text of drawings."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package
from parquetry.extract.sheets.notes import SheetNote, cell_name
from parquetry.extract.sheets.sizes import repeats

_SHOWN = frozenset({"float", "percentage", "currency", "date", "time"})
"""types of values that are stored apart from the text that is shown"""
_DRAWN = "draw"
"""prefix of the elements of drawings"""


@dataclass(slots=True)
class OdsTable:
    """The shown text of the cells of a sheet, and the notes over them."""

    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    """0-based row -> 0-based column -> shown text, of numbers and dates"""
    notes: list[SheetNote] = field(default_factory=list)


def ods_tables(package: Package) -> list[OdsTable]:
    """Return the tables of an ODS workbook in order; none if its content is not well-formed."""
    scan = _Scan()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = scan.start
    parser.EndElementHandler = scan.end
    parser.CharacterDataHandler = scan.characters
    try:
        for block in package.blocks("content.xml"):
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except (expat.ExpatError, BrokenDocument):
        return []
    return scan.tables


class _Scan:
    def __init__(self) -> None:
        self.tables: list[OdsTable] = []
        self._depth = 0
        """depth of tables; one within a cell is part of its text"""
        self._row = self._column = 0
        self._row_repeats = self._cell_repeats = 1
        self._shown: dict[int, str] = {}
        self._kind = ""
        self._lines: list[str] = []
        self._target: list[str] | None = None
        """lines that text goes to; None outside of paragraphs"""
        self._comment: list[str] | None = None
        self._author: list[str] | None = None
        self._drawing = 0
        self._drawn: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        prefix, _, kind = name.rpartition(":")
        if kind == "table":
            self._depth += 1
            if self._depth == 1:
                self.tables.append(OdsTable())
                self._row = 0
        elif self._depth != 1:
            return
        elif kind == "table-row":
            self._row_repeats = repeats(attributes, "number-rows-repeated")
            self._column, self._shown = 0, {}
        elif kind in ("table-cell", "covered-table-cell"):
            self._cell_repeats = repeats(attributes, "number-columns-repeated")
            self._kind = next((value for key, value in attributes.items() if key.endswith("value-type")), "")
            self._lines = []
        elif kind == "annotation":
            self._comment, self._author = [], []
        elif prefix == _DRAWN:
            self._drawing += 1
        elif kind == "p":
            self._paragraph()
        elif kind == "creator" and self._comment is not None and self._author is not None:
            self._target = self._author
            self._target.append("")

    def _paragraph(self) -> None:
        if self._comment is not None:
            self._target = self._comment
        else:
            self._target = self._drawn if self._drawing else self._lines
        self._target.append("")

    def characters(self, text: str) -> None:
        if self._target:
            self._target[-1] += text

    def end(self, name: str) -> None:
        prefix, _, kind = name.rpartition(":")
        if kind == "table":
            self._depth -= 1
        elif self._depth != 1:
            return
        elif kind in ("p", "creator"):
            self._target = None
        elif kind == "annotation":
            place = cell_name(self._row, self._column)
            self._note(f"Comment on {place}", " ".join(self._author or ()), self._comment or [])
            self._comment = self._author = None
        elif prefix == _DRAWN:
            self._drawing -= 1
            if not self._drawing:
                self._note("", "", self._drawn)
                self._drawn = []
        elif kind in ("table-cell", "covered-table-cell"):
            self._end_cell()
        elif kind == "table-row":
            if self._shown:
                self.tables[-1].rows.update(dict.fromkeys(range(self._row, self._row + self._row_repeats), self._shown))
            self._row += self._row_repeats

    def _note(self, head: str, author: str, lines: list[str]) -> None:
        if any(line.strip() for line in lines):
            self.tables[-1].notes.append(SheetNote(head, author.strip(), "\n".join(lines)))

    def _end_cell(self) -> None:
        text = " ".join(" ".join(self._lines).split())
        if self._kind in _SHOWN and text:
            columns = range(self._column, self._column + self._cell_repeats)
            self._shown.update(dict.fromkeys(columns, text))
        self._column += self._cell_repeats
        self._kind = ""
