"""Spreadsheets: each sheet as tables, read with calamine."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, one_line
from parquetry.extract.compound_file import check_chains
from parquetry.extract.grid import Row, add_grid, is_caption
from parquetry.extract.package import Package
from parquetry.extract.properties import core_properties, odf_properties
from parquetry.extract.sheets import binary as binary_sheets
from parquetry.extract.sheets import formulas as sheet_formulas
from parquetry.extract.sheets import sizes as sheet_sizes
from parquetry.extract.sheets.looks import Looks, OdsLooks, OoxmlLooks, XlsLooks
from parquetry.extract.sheets.number_formats import NumberFormat
from parquetry.extract.sheets.workbook import open_workbook, reading, second_workbook
from parquetry.extract.spreading import Spreading
from parquetry.model import Extraction, RawDocument, Scalar
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_XLS = "application/vnd.ms-excel"
_GENERIC_SHEET = re.compile(
    r"(sheet|tabelle|feuil(le)?|hoja|foglio|blad|ark|planilha|arkusz|лист|シート|工作表|시트)[ _]?\d*", re.IGNORECASE
)

MAX_SPARSE = 10
"""cells of a sheet's rectangle per filled cell that are free; further cells count against a limit for all sheets"""

Cell = tuple[int, int]
"""row and column, 0-based"""


class SheetExtractor(ListedExtractor):
    """Reads XLSX, XLSB, XLS and ODS workbooks."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one workbook: one part per sheet, including hidden ones.

        Raises:
            SkippedDocument: `empty`, when no sheet has a filled cell.
            BrokenDocument: `damaged`, `encrypted` or `too-large`.
        """
        about = _about(document.content, media_type, settings)
        try:
            return self._extracted(open_workbook(document.content), about, media_type, ())
        except BrokenDocument as error:
            readable = error.reason == "damaged" and media_type == _XLSX
            second = second_workbook(document.content, settings.max_unpacked_bytes) if readable else None
            if second is None:
                raise
            return self._extracted(second, about, media_type, (f"read with openpyxl, because {error.detail}",))

    def _extracted(self, workbook: Any, about: _About, media_type: str, notes: Sequence[str]) -> Extraction:
        builder = TextBuilder()
        warnings = [*notes, *([about.formulas] if about.formulas else [])]
        filled = 0
        spreading = Spreading()
        sparse = repeated = 0
        for number, sheet in enumerate(workbook.sheets_metadata, start=1):
            if number in about.again or sparse > sheet_sizes.MAX_GRID_CELLS:
                repeated += 1
                continue
            read = _read(workbook, number - 1, about.looks)
            beside = about.looks.notes(number - 1)
            sparse += max(0, read.cells - MAX_SPARSE * sum(len(row) - row.count("") for row in read.grid.values()))
            if not read.grid and not beside:
                continue
            filled += 1
            builder.part("sheet", number, sheet.name, "table")
            if not _GENERIC_SHEET.fullmatch(sheet.name.strip()):
                builder.heading(1, sheet.name)
            if not str(sheet.visible).endswith(".Visible"):
                warnings.append(f"sheet {number} ({sheet.name}) is hidden; its cells are indexed")
            _spread_merged(read.grid, read.merged, spreading)
            if read.grid:
                add_grid(builder, read.grid, caption_known=sheet.name, bold=read.bold)
            for note in beside:
                builder.text(str(note))
        if not filled:
            raise SkippedDocument("empty", "; ".join(["no sheet of the workbook has a filled cell", *warnings]))
        if repeated:
            warnings.append(f"{counted(repeated, 'sheet')} without cells of their own were not read")
        if spreading.refused:
            warnings.append(
                f"{counted(spreading.refused, 'merged range is', 'merged ranges are')} not spread over all cells"
            )
        return builder.build(
            title=about.title,
            metadata=about.metadata | {"sheets": len(workbook.sheets_metadata)},
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


@dataclass(frozen=True, slots=True)
class _About:
    """Facts about a workbook, collected before its cells are read."""

    title: str | None
    metadata: dict[str, Scalar]
    formulas: str | None
    """warning about formulas without a value"""
    again: set[int]
    """1-based numbers of duplicate sheets"""
    looks: Looks


def _about(content: bytes, media_type: str, settings: ExtractionSettings) -> _About:
    """Check the archive, because calamine unpacks without a cap, and read what is beside the cells."""
    if media_type == _XLS and not content.startswith(b"PK"):
        check_chains(content)
        return _About(None, {}, None, set(), XlsLooks(binary_sheets.checked_xls(content)))
    package = Package(content, settings.max_unpacked_bytes)
    package.check()
    sheet_sizes.check(package)
    formulas = sheet_formulas.note(package)
    if "content.xml" in package:
        return _About(*odf_properties(package), formulas, set(), OdsLooks(package))
    again = sheet_formulas.listed_again(package) | binary_sheets.listed_again(package)
    return _About(*core_properties(package), formulas, again, OoxmlLooks(package))


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The cells of a sheet. Columns are counted from the first used one."""

    grid: dict[int, Row]
    """rows with a filled cell, by 0-based number"""
    merged: list[tuple[Cell, Cell]]
    bold: set[int]
    """0-based numbers of rows in bold"""
    cells: int
    """size of the used rectangle in cells"""


def _read(workbook: Any, index: int, looks: Looks) -> _Sheet:
    with reading(f"sheet {index + 1}"):
        sheet = workbook.get_sheet_by_index(index)
        left = sheet.start[1] if sheet.start else 0
        styles, stored = looks.styles(index), looks.shown(index)
        grid: dict[int, Row] = {}
        bold: set[int] = set()
        # iter_rows starts at the first row of the sheet but at the first used column.
        for number, row in enumerate(sheet.iter_rows()):
            if row.count("") == len(row):
                continue
            cells = [shown(cell) if cell != "" else "" for cell in row]
            strong = 0
            for place, style in styles.of(number):
                column = place - left
                if 0 <= column < len(row) and row[column] != "":
                    strong += style.bold
                    if style.format is not None and not isinstance(row[column], str):
                        cells[column] = _formatted(style.format, row[column], cells[column])
            for place, text in stored.get(number, {}).items():
                if 0 <= place - left < len(row) and cells[place - left]:
                    cells[place - left] = one_line(text)
            if any(cells):
                grid[number] = cells
                if strong * 3 > 2 * sum(map(bool, cells)):
                    bold.add(number)
        merged = [
            ((top, first - left), (bottom, last - left))
            for (top, first), (bottom, last) in sheet.merged_cell_ranges or ()
        ]
        return _Sheet(grid, merged, bold, sheet.total_height * sheet.total_width)


def _formatted(form: NumberFormat, value: Any, plain: str) -> str:
    """Show a value by its format; as it is stored if the format hides it."""
    text = form.show(value)
    return plain if not text else " ".join(text.split())


def shown(value: object) -> str:
    """Format a cell's value as people see it: no `.0`, no midnight, no binary fractions.

    Args:
        value: value returned by calamine.
    """
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else format(value, ".15g")
        case datetime():
            seconds = "seconds" if value.second else "minutes"
            return str(value.date()) if value.time() == time() else value.isoformat(" ", seconds)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("seconds" if value.second else "minutes")
        case timedelta():
            total = round(value.total_seconds())
            return f"{'-' if total < 0 else ''}{abs(total) // 3600}:{abs(total) // 60 % 60:02}:{abs(total) % 60:02}"
        case _:
            return " ".join(str(value).split())


def _spread_merged(grid: dict[int, Row], merged: list[tuple[Cell, Cell]], spreading: Spreading) -> None:
    """Copy the value of a merged range to all its cells, so that each row is complete.

    A range with nothing beside it is a caption and stays one cell. Programs never create overlapping ranges.
    """
    numbers = sorted(grid)
    captions = {number for number, row in grid.items() if is_caption(row)}
    left_over = sum(map(len, grid.values()))
    for (top, left), (bottom, right) in merged:
        if left < 0 or not (value := "".join(grid.get(top, [])[left : left + 1])):
            continue
        # Only counted at first: ranges that are refused must not cost their rows.
        first, end = bisect_left(numbers, top), bisect_right(numbers, bottom)
        cells = (end - first) * (min(right + 1, len(grid[top])) - left)
        left_over -= cells
        if left_over < 0 or not spreading.allows(value, cells):
            spreading.refused += left_over < 0
            continue
        for number in numbers[first:end]:
            row = grid[number]
            if number > top or top not in captions:
                row[left : right + 1] = [cell or value for cell in row[left : right + 1]]
