"""Spreadsheets: every sheet as tables, read by calamine."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

from knowledge.errors import BrokenDocument, SkippedDocument
from knowledge.extract import sheet_formulas
from knowledge.extract.builder import TextBuilder
from knowledge.extract.grid import Row, add_grid, is_caption
from knowledge.extract.package import Package, is_encrypted_container
from knowledge.extract.properties import core_properties, odf_properties
from knowledge.model import Extraction, RawDocument, Scalar
from knowledge.settings import ExtractionSettings

MAX_GRID_CELLS = 20_000_000
"""calamine holds the rectangle around all used cells, 32 bytes each: this is 640 MB. The longest sheet that Excel can
make, 1,048,576 rows, passes with up to 19 columns."""

_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_XLS = "application/vnd.ms-excel"
_GENERIC_SHEET = re.compile(
    r"(sheet|tabelle|feuil(le)?|hoja|foglio|blad|ark|planilha|arkusz|лист|シート|工作表|시트)[ _]?\d*", re.IGNORECASE
)
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\s[^>]*?ref=\"([A-Z]+\d+(?::[A-Z]+\d+)?)\"")
_FILLED_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]*?r=\"([A-Z]+\d+)\"[^>]*[^/>]>")

Cell = tuple[int, int]
"""row and column, 0-based"""


class SheetExtractor:
    """Reads XLSX, XLSB, XLS and ODS workbooks."""

    name = "sheets"
    version = 2
    media_types = frozenset({_XLSX, _XLSB, _ODS, _XLS})
    settings_used = frozenset({"max_unpacked_bytes"})

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one workbook: one part per sheet, hidden ones included.

        Raises:
            SkippedDocument: `empty`, when no sheet has a filled cell.
            BrokenDocument: `damaged`, `encrypted` or `too-large`.
        """
        title, metadata, formulas = _properties(document.content, media_type, settings)
        builder = TextBuilder()
        warnings = [formulas] if formulas else []
        filled = 0
        workbook = _open(document.content)
        for number, sheet in enumerate(workbook.sheets_metadata, start=1):
            grid, merged = _read(workbook, number - 1)
            if not grid:
                continue
            filled += 1
            builder.part("sheet", number, sheet.name, "table")
            if not _GENERIC_SHEET.fullmatch(sheet.name.strip()):
                builder.heading(1, sheet.name)
            if not str(sheet.visible).endswith(".Visible"):
                warnings.append(f"sheet {number} ({sheet.name}) is hidden; its cells are indexed")
            _spread_merged(grid, merged)
            add_grid(builder, grid, caption_known=sheet.name)
        if not filled:
            raise SkippedDocument("empty", "; ".join(["no sheet of the workbook has a filled cell", *warnings]))
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
) -> tuple[str | None, dict[str, Scalar], str | None]:
    """Title, metadata and the note on formulas. Checks the archive on the way, since calamine unpacks without a cap."""
    if media_type == _XLS and not content.startswith(b"PK"):
        return None, {}, None
    package = Package(content, settings.max_unpacked_bytes)
    package.check()
    if "content.xml" in package:
        return *odf_properties(package), sheet_formulas.note(package)
    for name in package.names:
        if re.fullmatch(r"(?i)xl/worksheets/[^/]+\.xml", name):
            _refuse_sprawl(package, name)
    return *core_properties(package), sheet_formulas.note(package)


def _refuse_sprawl(package: Package, name: str) -> None:
    """Two cells in opposite corners of a sheet make a rectangle of 17 thousand million cells."""
    first = next(package.blocks(name), b"")
    declared = _DIMENSION.search(first)
    if declared and _area(*_corners(declared[1].split(b":"))) <= MAX_GRID_CELLS:
        return
    cells: list[bytes] = []
    top = left = 1 << 30
    bottom = right = 0
    tail = b""
    for block in package.blocks(name):
        cells = _FILLED_CELL.findall(tail + block)
        tail = block[-200:]
        if cells:
            block_top, block_left, block_bottom, block_right = _corners(cells)
            top, left = min(top, block_top), min(left, block_left)
            bottom, right = max(bottom, block_bottom), max(right, block_right)
    if _area(top, left, bottom, right) > MAX_GRID_CELLS:
        raise BrokenDocument(
            "too-large", f"the filled cells of {name} span {bottom - top + 1} rows by {right - left + 1} columns"
        )


def _area(top: int, left: int, bottom: int, right: int) -> int:
    return max(0, bottom - top + 1) * max(0, right - left + 1)


def _corners(references: list[bytes]) -> tuple[int, int, int, int]:
    """Top, left, bottom and right of the rectangle around cells like `BC12`."""
    rows, columns = [], []
    for reference in set(references):
        letters = reference.rstrip(b"0123456789")
        column = 0
        for letter in letters:
            column = column * 26 + letter - 64
        rows.append(int(reference[len(letters) :]))
        columns.append(column)
    return min(rows), min(columns), max(rows), max(columns)


@contextmanager
def _reading(what: str, *, locked: bool = False) -> Iterator[None]:
    """Translate the ways in which calamine gives up; `locked` tells that a password explains it."""
    from python_calamine import CalamineError

    try:
        yield
    except CalamineError as error:
        reason = "encrypted" if locked or "password" in str(error).lower() else "damaged"
        raise BrokenDocument(reason, f"{what} cannot be read: {error}") from error
    except BaseException as error:
        # A Rust panic, on a file cut short for example; its class cannot be imported, and is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise BrokenDocument("damaged", f"{what} cannot be read: {error}") from error


def _open(content: bytes) -> Any:
    from python_calamine import CalamineWorkbook

    with _reading("the workbook", locked=is_encrypted_container(content)):
        return CalamineWorkbook.from_filelike(io.BytesIO(content))


def _read(workbook: Any, index: int) -> tuple[dict[int, Row], list[tuple[Cell, Cell]]]:
    """Rows that have a filled cell, by 0-based number, and the merged ranges, both counted from the used rectangle."""
    with _reading(f"sheet {index + 1}"):
        sheet = workbook.get_sheet_by_index(index)
        grid = {}
        # iter_rows starts at the first row of the sheet but at the first used column.
        for number, row in enumerate(sheet.iter_rows()):
            if row.count("") < len(row) and any(cells := [shown(cell) for cell in row]):
                grid[number] = cells
        left = sheet.start[1] if sheet.start else 0
        merged = [
            ((top, first - left), (bottom, last - left))
            for (top, first), (bottom, last) in sheet.merged_cell_ranges or ()
        ]
    return grid, merged


def shown(value: object) -> str:
    """A cell's value as people see it: no `.0`, no midnight, no binary fractions.

    Args:
        value: as calamine gives it.
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


def _spread_merged(grid: dict[int, Row], merged: list[tuple[Cell, Cell]]) -> None:
    """Give every cell of a merged range its value, so that each row can be understood by itself.

    A range with nothing beside it is a caption and stays one cell.
    """
    last = max(grid)
    captions = {number for number, row in grid.items() if is_caption(row)}
    for (top, left), (bottom, right) in merged:
        if left < 0 or not (value := "".join(grid.get(top, [])[left : left + 1])):
            continue
        for number in range(top, min(bottom, last) + 1):
            row = grid.get(number)
            if row and (number > top or top not in captions):
                row[left : right + 1] = [cell or value for cell in row[left : right + 1]]
