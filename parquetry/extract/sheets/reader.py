"""Spreadsheets: each sheet as tables, read with calamine."""

from __future__ import annotations

import io
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.builder import TextBuilder
from parquetry.extract.grid import Row, add_grid, is_caption
from parquetry.extract.package import Package, is_encrypted_container
from parquetry.extract.properties import core_properties, odf_properties
from parquetry.extract.sheets import binary as binary_sheets
from parquetry.extract.sheets import formulas as sheet_formulas
from parquetry.extract.sheets import sizes as sheet_sizes
from parquetry.extract.sheets.compound_file import check_chains
from parquetry.extract.spreading import Spreading
from parquetry.model import Extraction, RawDocument, Scalar
from parquetry.plural import counted
from parquetry.settings.sections import ExtractionSettings

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


class SheetExtractor:
    """Reads XLSX, XLSB, XLS and ODS workbooks."""

    name = "sheets"
    version = 2
    media_types = frozenset({_XLSX, _XLSB, _ODS, _XLS})
    settings_used = frozenset({"max_unpacked_bytes"})

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one workbook: one part per sheet, including hidden ones.

        Raises:
            SkippedDocument: `empty`, when no sheet has a filled cell.
            BrokenDocument: `damaged`, `encrypted` or `too-large`.
        """
        title, metadata, formulas, again = _properties(document.content, media_type, settings)
        builder = TextBuilder()
        warnings = [formulas] if formulas else []
        filled = 0
        workbook = _open(document.content)
        spreading = Spreading()
        sparse = repeated = 0
        for number, sheet in enumerate(workbook.sheets_metadata, start=1):
            if number in again or sparse > sheet_sizes.MAX_GRID_CELLS:
                repeated += 1
                continue
            grid, merged, cells = _read(workbook, number - 1)
            sparse += max(0, cells - MAX_SPARSE * sum(len(row) - row.count("") for row in grid.values()))
            if not grid:
                continue
            filled += 1
            builder.part("sheet", number, sheet.name, "table")
            if not _GENERIC_SHEET.fullmatch(sheet.name.strip()):
                builder.heading(1, sheet.name)
            if not str(sheet.visible).endswith(".Visible"):
                warnings.append(f"sheet {number} ({sheet.name}) is hidden; its cells are indexed")
            _spread_merged(grid, merged, spreading)
            add_grid(builder, grid, caption_known=sheet.name)
        if not filled:
            raise SkippedDocument("empty", "; ".join(["no sheet of the workbook has a filled cell", *warnings]))
        if repeated:
            warnings.append(f"{counted(repeated, 'sheet')} without cells of their own were not read")
        if spreading.refused:
            warnings.append(
                f"{counted(spreading.refused, 'merged range is', 'merged ranges are')} not spread over all cells"
            )
        metadata["sheets"] = len(workbook.sheets_metadata)
        return builder.build(
            title=title,
            metadata=metadata,
            media_type=media_type,
            extractor=f"{self.name}/{self.version}",
            warnings=warnings,
        )


def _properties(
    content: bytes, media_type: str, settings: ExtractionSettings
) -> tuple[str | None, dict[str, Scalar], str | None, set[int]]:
    """Return title, metadata, the warning about formulas, and the 1-based numbers of duplicate sheets.

    Checks the archive first, because calamine unpacks without a cap.
    """
    if media_type == _XLS and not content.startswith(b"PK"):
        check_chains(content)
        binary_sheets.check_xls(content)
        return None, {}, None, set()
    package = Package(content, settings.max_unpacked_bytes)
    package.check()
    sheet_sizes.check(package)
    if "content.xml" in package:
        return *odf_properties(package), sheet_formulas.note(package), set()
    again = sheet_formulas.listed_again(package) | binary_sheets.listed_again(package)
    return *core_properties(package), sheet_formulas.note(package), again


@contextmanager
def _reading(what: str, *, locked: bool = False) -> Iterator[None]:
    """Translate calamine's errors; if `locked` is True, the error is reported as `encrypted`."""
    from python_calamine import CalamineError

    try:
        yield
    except CalamineError as error:
        reason = "encrypted" if locked or "password" in str(error).lower() else "damaged"
        raise BrokenDocument(reason, f"{what} cannot be read: {error}") from error
    except BaseException as error:
        # A Rust panic, for example on a truncated file; its class cannot be imported and does not derive from
        # Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise BrokenDocument("damaged", f"{what} cannot be read: {error}") from error


def _open(content: bytes) -> Any:
    from python_calamine import CalamineWorkbook

    with _reading("the workbook", locked=is_encrypted_container(content)):
        return CalamineWorkbook.from_filelike(io.BytesIO(content))


def _read(workbook: Any, index: int) -> tuple[dict[int, Row], list[tuple[Cell, Cell]], int]:
    """Return rows with a filled cell by 0-based number, merged ranges, and the size of the used rectangle in cells.

    Columns of rows and ranges are counted from the first used column.
    """
    with _reading(f"sheet {index + 1}"):
        sheet = workbook.get_sheet_by_index(index)
        grid = {}
        # iter_rows starts at the first row of the sheet but at the first used column.
        for number, row in enumerate(sheet.iter_rows()):
            if row.count("") < len(row) and any(cells := [shown(cell) if cell != "" else "" for cell in row]):
                grid[number] = cells
        left = sheet.start[1] if sheet.start else 0
        merged = [
            ((top, first - left), (bottom, last - left))
            for (top, first), (bottom, last) in sheet.merged_cell_ranges or ()
        ]
        return grid, merged, sheet.total_height * sheet.total_width


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
