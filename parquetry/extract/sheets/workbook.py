"""Opens workbooks: with calamine, and with openpyxl those that only openpyxl reads."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zipfile import BadZipFile

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package, is_encrypted_container
from parquetry.extract.sheets.sizes import SHEET_PART

_FAULTS = (
    AttributeError,
    BadZipFile,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""errors of openpyxl in workbooks that it cannot read; errors of XML parsers are `SyntaxError`"""
_ASIDE = re.compile(rb"<(?:\w{1,20}:)?(?:dimension|mergeCell)\s[^<>]*/>")
_Value = str | float | bool | datetime | date | time | timedelta


@contextmanager
def reading(what: str, *, locked: bool = False) -> Iterator[None]:
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


def open_workbook(content: bytes) -> Any:
    """Return a workbook opened with calamine."""
    from python_calamine import CalamineWorkbook

    with reading("the workbook", locked=is_encrypted_container(content)):
        return CalamineWorkbook.from_filelike(io.BytesIO(content))


def second_workbook(content: bytes, max_unpacked_bytes: int) -> SecondWorkbook | None:
    """Return an XLSX workbook opened with openpyxl, which forgives other faults; None if it cannot be read either.

    What sheets say of their size and of merged cells is left out: a mistake there would cost all cells.
    """
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    package = Package(content, max_unpacked_bytes)
    sheets = {name: _ASIDE.sub(b"", package.read(name)) for name in package.names if SHEET_PART.fullmatch(name)}
    with warnings.catch_warnings():
        # It warns of parts that it does not know.
        warnings.simplefilter("ignore")
        try:
            return SecondWorkbook(load_workbook(io.BytesIO(package.repack(sheets)), read_only=True, data_only=True))
        except (InvalidFileException, *_FAULTS):
            return None


@dataclass(frozen=True, slots=True)
class SecondMetadata:
    """Name and state of a sheet."""

    name: str
    visible: str


class SecondWorkbook:
    """A workbook of openpyxl, in the part of calamine's interface that is used."""

    def __init__(self, workbook: Any) -> None:
        self._sheets = workbook.worksheets
        self.sheets_metadata = [
            SecondMetadata(sheet.title, ".Visible" if sheet.sheet_state == "visible" else ".Hidden")
            for sheet in self._sheets
        ]

    def get_sheet_by_index(self, index: int) -> SecondSheet:
        try:
            return SecondSheet(self._sheets[index])
        except _FAULTS as error:
            raise BrokenDocument("damaged", f"sheet {index + 1} cannot be read: {error}") from error


class SecondSheet:
    """A sheet of openpyxl."""

    start = (0, 0)
    merged_cell_ranges: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()

    def __init__(self, sheet: Any) -> None:
        # What a sheet says of its size is not believed.
        sheet.reset_dimensions()
        rows = [["" if value is None else value for value in row] for row in sheet.iter_rows(values_only=True)]
        self.total_width = max(map(len, rows), default=0)
        self.total_height = len(rows)
        self._rows = rows

    def iter_rows(self) -> Iterator[list[_Value]]:
        for row in self._rows:
            yield [*row, *[""] * (self.total_width - len(row))]
