"""The look of a workbook beside its stored values: formats, bold cells, comments, text boxes."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

from parquetry.extract.package import Package
from parquetry.extract.sheets.binary import sheet_starts
from parquetry.extract.sheets.binary_notes import xls_notes
from parquetry.extract.sheets.binary_styles import xls_cells, xls_styles, xlsb_cells, xlsb_styles
from parquetry.extract.sheets.cell_styles import RowStyles, no_styles, xlsx_cells, xlsx_styles
from parquetry.extract.sheets.formulas import sheet_parts
from parquetry.extract.sheets.notes import SheetNote, SheetNotes
from parquetry.extract.sheets.open_document import ods_tables

Shown = dict[int, dict[int, str]]
"""0-based row -> 0-based column -> text that a cell shows"""


class Looks(Protocol):
    """The looks of the sheets of one workbook; sheets are numbered from 0."""

    def styles(self, number: int) -> RowStyles:
        """Return the styles of the cells of a sheet."""
        ...

    def shown(self, number: int) -> Shown:
        """Return the cells of a sheet whose shown text the workbook stores."""
        ...

    def notes(self, number: int) -> list[SheetNote]:
        """Return the notes of a sheet."""
        ...


class OoxmlLooks:
    """Looks of an XLSX or XLSB workbook."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._binary = "xl/workbook.bin" in package
        self._styles = xlsb_styles(package) if self._binary else xlsx_styles(package)
        self._parts = sheet_parts(package)
        self._notes = SheetNotes(package)

    def styles(self, number: int) -> RowStyles:
        part = self._part(number)
        if part is None:
            return no_styles()
        cells = xlsb_cells(self._package, part) if self._binary else xlsx_cells(self._package, part, self._styles)
        return RowStyles(cells, self._styles)

    def shown(self, number: int) -> Shown:  # noqa: ARG002 (formats say it)
        return {}

    def notes(self, number: int) -> list[SheetNote]:
        part = self._part(number)
        return [] if part is None else self._notes.of(part)

    def _part(self, number: int) -> str | None:
        part = self._parts[number] if number < len(self._parts) else None
        return part if part is not None and part in self._package else None


class XlsLooks:
    """Looks of an XLS workbook.

    Args:
        workbook: the workbook's stream.
    """

    def __init__(self, workbook: bytes) -> None:
        self._workbook = workbook
        self._styles = xls_styles(workbook)
        self._starts = sheet_starts(workbook)
        self._ends = dict(pairwise([*sorted(self._starts), len(workbook)]))

    def styles(self, number: int) -> RowStyles:
        if number >= len(self._starts):
            return no_styles()
        return RowStyles(xls_cells(self._workbook, self._starts[number]), self._styles)

    def shown(self, number: int) -> Shown:  # noqa: ARG002 (formats say it)
        return {}

    def notes(self, number: int) -> list[SheetNote]:
        if number >= len(self._starts):
            return []
        start = self._starts[number]
        return xls_notes(self._workbook, start, self._ends[start])


class OdsLooks:
    """Looks of an ODS workbook."""

    def __init__(self, package: Package) -> None:
        self._tables = ods_tables(package)

    def styles(self, number: int) -> RowStyles:  # noqa: ARG002 (cells store what they show)
        return no_styles()

    def shown(self, number: int) -> Shown:
        return self._tables[number].rows if number < len(self._tables) else {}

    def notes(self, number: int) -> list[SheetNote]:
        return self._tables[number].notes if number < len(self._tables) else []
