"""Finds formulas without a stored value, left by programs that write workbooks without calculating them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import unescape

from parquetry.errors import BrokenDocument
from parquetry.extract.builder import normalise
from parquetry.extract.package import Package
from parquetry.extract.sheets.binary import listed_parts
from parquetry.plural import counted

_SHEET_PART = re.compile(r"(?i)xl/worksheets/[^/]+\.xml")
_NAME = rb"(?:[A-Za-z]\w{0,20}:)?"
# Every repeated piece ends at the next bracket, so that a search takes linear time.
_XLSX_FORMULA = re.compile(
    rb"<" + _NAME + rb"c(\s[^<>]*)?>\s*<" + _NAME + rb"f(?:\s[^<>]*)?(?:(?<=/)>|>[^<]*</" + _NAME + rb"f>)\s*"
    rb"(<" + _NAME + rb"v\s*(?:/>|>\s*</" + _NAME + rb"v>)\s*)?</" + _NAME + rb"c>"
)
_REFERENCE = re.compile(rb"\br=[\"']([A-Z]{1,3}\d{1,7})[\"']")
_STORED_TEXT = re.compile(rb"\bt=[\"']str[\"']")
_ODS_TABLE_OR_FORMULA = re.compile(rb"<" + _NAME + rb"(?:(table)\s([^<>]*)>|table-cell\s([^<]*?\bformula=[^<]*))")
_ODS_TABLE_NAME = re.compile(rb"[\s:]name=[\"']([^\"'<>]{1,200})[\"']")
_LISTED_SHEETS = 5
_LISTED_CELLS = 3
_LONGEST_NAME = 40
"""characters of a sheet's name that are shown"""
_CARRIED = 100_000
"""bytes of an unfinished cell that are searched again with the next block"""


class _Found:
    """Formulas without a value in one sheet."""

    def __init__(self) -> None:
        self.count = 0
        self.cells: list[str] = []

    def add(self, cell: str | None) -> None:
        self.count += 1
        if cell and len(self.cells) < _LISTED_CELLS:
            self.cells.append(cell)


def note(package: Package) -> str | None:
    """Return the warning about formulas without a value; None if every formula has one.

    XLSX and ODS only: in XLS and XLSB, every formula has a value.

    Args:
        package: package of the workbook.
    """
    found = _in_ods(package) if "content.xml" in package else _in_xlsx(package)
    if not found:
        return None
    total = sum(sheet.count for sheet in found.values())
    listed = [_told(name, sheet) for name, sheet in list(found.items())[:_LISTED_SHEETS]]
    if len(found) > _LISTED_SHEETS:
        listed.append(f"{len(found) - _LISTED_SHEETS} more sheets")
    count, where = counted(total, "formula has", "formulas have"), ", ".join(listed)
    return f"{count} no stored value: {where}; open and save the workbook in a spreadsheet program"


def _told(name: str, sheet: _Found) -> str:
    name = " ".join(normalise(name).split())
    name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    cells = [*sheet.cells, "..."] if sheet.count > len(sheet.cells) > 0 else sheet.cells
    return f"{sheet.count} in sheet {name}" + (f" ({', '.join(cells)})" if cells else "")


def _in_xlsx(package: Package) -> dict[str, _Found]:
    parts = [name for name in package.names if _SHEET_PART.fullmatch(name)]
    found: dict[str, _Found] = {}
    for part in parts:
        sheet = _Found()
        for data in _pieces(package, part, b"c>"):
            for cell in _XLSX_FORMULA.finditer(data):
                attributes, empty_value = cell[1] or b"", cell[2]
                if empty_value is not None and _STORED_TEXT.search(attributes):
                    # The value is an empty text.
                    continue
                reference = _REFERENCE.search(attributes)
                sheet.add(reference[1].decode() if reference else None)
        if sheet.count:
            found[part] = sheet
    names = _sheet_names(package) if found else {}
    return {names.get(part.lower(), posixpath.basename(part)): sheet for part, sheet in found.items()}


def _in_ods(package: Package) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    name = ""
    for data in _pieces(package, "content.xml", b"</"):
        for element in _ODS_TABLE_OR_FORMULA.finditer(data):
            if element[1]:
                declared = _ODS_TABLE_NAME.search(element[2])
                name = unescape(declared[1].decode("utf-8", "replace")) if declared else ""
            elif b"value-type=" not in element[3]:
                found.setdefault(name, _Found()).add(None)
    return found


def _pieces(package: Package, part: str, end: bytes) -> Iterator[bytes]:
    """Yield the unpacked part in pieces that end after a closing tag, so that no match is cut in two."""
    rest = b""
    for block in package.blocks(part):
        data = rest + block
        cut = data.rfind(end)
        rest = data[cut:] if cut >= 0 else data
        rest = rest[-_CARRIED:]
        yield data[: cut + len(end)] if cut >= 0 else b""
    yield rest


def listed_again(package: Package) -> set[int]:
    """Return the 1-based numbers of the sheets of an XLSX workbook that share the part of an earlier sheet."""
    seen: set[str] = set()
    again = set()
    for number, (part, _) in enumerate(_listed_sheets(package), start=1):
        if part in seen:
            again.add(number)
        seen.add(part)
    return again


def _sheet_names(package: Package) -> dict[str, str]:
    """Map the lower-case name of a sheet's part to the sheet's name, if the workbook gives it."""
    return dict(_listed_sheets(package))


def sheet_parts(package: Package) -> list[str]:
    """Return the lower-case name of the part of each sheet that an XLSX or XLSB workbook lists."""
    if "xl/workbook.bin" in package:
        return listed_parts(package)
    return [part for part, _ in _listed_sheets(package)]


def _listed_sheets(package: Package) -> list[tuple[str, str]]:
    """Return the lower-case part name and the name of each sheet listed in the workbook."""
    try:
        relations = package.xml("xl/_rels/workbook.xml.rels").iter("{*}Relationship")
        targets = {relation.get("Id"): relation.get("Target") or "" for relation in relations}
        sheets = list(package.xml("xl/workbook.xml").iter("{*}sheet"))
    except BrokenDocument:
        return []
    listed = []
    for sheet in sheets:
        relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), None)
        part = posixpath.normpath(posixpath.join("/xl", targets.get(relation, ""))).lstrip("/").lower()
        listed.append((part, sheet.get("name") or ""))
    return listed
