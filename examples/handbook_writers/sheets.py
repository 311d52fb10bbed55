"""XLSX, through XlsxWriter."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import date
from typing import Any

import xlsxwriter

from .archive import repack
from .source import EDITION


def write_xlsx(book: Mapping[str, Any]) -> bytes:
    """A workbook.

    Args:
        book: title, author, and sheets with name, columns and rows.
    """
    buffer = io.BytesIO()
    workbook = xlsxwriter.Workbook(buffer, {"in_memory": True})
    created = EDITION.replace(tzinfo=None)
    workbook.set_properties({"title": book["title"], "author": book["author"], "created": created})
    bold = workbook.add_format({"bold": True})
    day = workbook.add_format({"num_format": "yyyy-mm-dd"})
    money = workbook.add_format({"num_format": "#,##0"})
    for page in book["sheet"]:
        sheet = workbook.add_worksheet(page["name"])
        sheet.freeze_panes(1, 0)
        sheet.set_column(0, len(page["columns"]) - 1, 24)
        sheet.write_row(0, 0, page["columns"], bold)
        for row, values in enumerate(page["rows"], start=1):
            for column, value in enumerate(values):
                match value:
                    case date():
                        sheet.write_datetime(row, column, value, day)
                    case int() | float():
                        sheet.write_number(row, column, value, money)
                    case _:
                        sheet.write(row, column, value)
    workbook.close()
    return repack(buffer.getvalue())
