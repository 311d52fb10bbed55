"""Comments and text boxes of XLS workbooks, by [MS-XLS] 2.4.179, 2.4.181 and 2.4.329."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from parquetry.extract.sheets.notes import SheetNote, cell_name

_BOF, _END, _OBJECT, _TEXT, _CONTINUED, _NOTE = 0x0809, 0x0A, 0x5D, 0x01B6, 0x3C, 0x1C
_RECORD = struct.Struct("<HH")
_TEXT_LENGTH_AT = 10
_OBJECT_NUMBER_AT = 6


def xls_notes(workbook: bytes, start: int, end: int) -> list[SheetNote]:
    """Return the notes of a sheet.

    Args:
        workbook: the workbook's stream.
        start: 0-based offset of the sheet.
        end: offset of what follows it.
    """
    texts: dict[int, str] = {}
    places: dict[int, tuple[str, str]] = {}
    shape = length = 0
    pieces: list[str] = []
    for kind, place, size in _whole_sheet(workbook, start, end):
        record = workbook[place : place + size]
        if kind == _CONTINUED and length and record:
            wide = record[0] & 1
            piece = record[1 : 1 + length * (1 + wide)].decode("utf-16-le" if wide else "latin-1", "replace")
            pieces.append(piece)
            length -= max(1, len(piece))
            texts[shape] = "".join(pieces)
            continue
        if kind == _OBJECT and size >= _OBJECT_NUMBER_AT + 2:
            shape = int.from_bytes(record[_OBJECT_NUMBER_AT : _OBJECT_NUMBER_AT + 2], "little")
        length, pieces = 0, []
        if kind == _TEXT and size >= _TEXT_LENGTH_AT + 2:
            length = int.from_bytes(record[_TEXT_LENGTH_AT : _TEXT_LENGTH_AT + 2], "little")
        elif kind == _NOTE and size >= 11:
            row, column, _, found, count, wide = struct.unpack_from("<HHHHHB", record)
            width = 1 + (wide & 1)
            author = record[11 : 11 + count * width].decode("utf-16-le" if wide & 1 else "latin-1", "replace")
            places[found] = (f"Comment on {cell_name(row, column)}", author.strip("\x00 "))
    return [
        SheetNote(*places.get(found, ("", "")), _without_author(text.replace("\r", "\n").strip(), places.get(found)))
        for found, text in texts.items()
        if text.strip()
    ]


def _without_author(text: str, place: tuple[str, str] | None) -> str:
    """Drop the author's name, with which Excel begins the text of a comment."""
    if place is None or not place[1] or not text.startswith(f"{place[1]}:"):
        return text
    return text[len(place[1]) + 1 :].strip()


def _whole_sheet(workbook: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the records of a sheet, with those of the charts within."""
    depth = 0
    while start + _RECORD.size <= end:
        kind, size = _RECORD.unpack_from(workbook, start)
        yield kind, start + _RECORD.size, size
        depth += (kind == _BOF) - (kind == _END)
        if depth <= 0:
            return
        start += _RECORD.size + size
