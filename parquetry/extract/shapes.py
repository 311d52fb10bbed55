"""Extracts the content of one slide in reading order."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from parquetry.errors import BrokenDocument
from parquetry.extract.builder import TextBuilder
from parquetry.extract.grid import looks_like_names
from parquetry.extract.package import parse_xml
from parquetry.extract.spreading import Spreading

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_REPEATED = frozenset({"dt", "ftr", "sldNum", "hdr"})
"""placeholders with the same text on every slide"""
MAX_LEVEL = 8
"""level of a list, 0 for the outermost; PowerPoint's maximum"""
MAX_CATEGORY_LEVELS = 20
_TITLES = frozenset({"title", "ctrTitle"})
_LISTS = frozenset({"body", "obj", None})
_LIST_ITEM = re.compile(r" *(-|1\.) ")
_UNTELLING_ALT = re.compile(
    r"\W*|.*\.(png|jpe?g|gif|svg|webp|bmp|emf|wmf|tiff?)|(image|picture|photo|bild|grafik|logo|icon)\W*\d*",
    re.IGNORECASE,
)
_GENERATED_ALT = re.compile(
    "Description automatically generated|AI-generated content may be incorrect|Automatisch generierte"
)
"""start of a program's note that it generated the text"""


class SlideWriter:
    """Writes one slide into a builder, its title first.

    Args:
        builder: receives the text; the slide's part is already open.
        slide: a python-pptx slide.
        drawn: names of the chart and diagram parts already written, which are not repeated.
    """

    def __init__(self, builder: TextBuilder, slide: Any, drawn: set[str]) -> None:
        self._drawn = drawn
        self._builder = builder
        self._slide = slide
        _reveal_alternatives(slide._element)
        self._title_shape = next((shape for shape in slide.shapes if _placeholder(shape) in _TITLES), None)
        title = "" if self._title_shape is None else " ".join(self._title_shape.text_frame.text.split())
        self.title = title or None
        self.warnings: list[str] = []

    def write(self) -> None:
        if self.title:
            self._builder.heading(1, self.title)
        self._write_shapes(self._slide.shapes)

    def _write_shapes(self, shapes: Iterable[Any]) -> None:
        for shape in reading_order(shapes):
            if self._title_shape is not None and shape._element is self._title_shape._element:
                continue
            if _placeholder(shape) in _REPEATED:
                continue
            self._write_shape(shape)

    def _write_shape(self, shape: Any) -> None:
        element = shape._element
        kind = element.tag.rpartition("}")[2]
        alternative = alternative_text(element)
        if kind == "grpSp":
            self._write_shapes(shape.shapes)
        elif getattr(shape, "has_table", False):
            self._write_table(shape.table)
        elif getattr(shape, "has_chart", False):
            self._write_chart(element)
        elif kind == "graphicFrame":
            self._write_diagram(element)
        elif getattr(shape, "has_text_frame", False):
            lines = paragraph_lines(element, is_list=_placeholder(shape) in _LISTS)
            self._builder.text("\n".join(lines))
            alternative = None if lines else alternative
        if alternative:
            self._builder.text(f"![{alternative}]" if kind == "pic" else alternative)

    def _write_table(self, table: Any) -> None:
        from pptx.table import _Cell

        rows: list[list[str]] = []
        spreading = Spreading()
        # Each row of `table.rows` costs a pass over all rows.
        grid = [[_Cell(cell, table) for cell in row.tc_lst] for row in table._tbl.tr_lst]
        for row in grid:
            cells: list[str] = []
            for cell in row:
                text = " ".join(cell.text_frame.text.split())
                # A merged cell's value applies to every column and row that it covers.
                covered = cell.is_spanned and cell._tc.hMerge and cells and spreading.allows(cells[-1])
                cells.append(cells[-1] if covered else text)
            rows.append(cells)
        for above, below, row in zip(rows, rows[1:], grid[1:], strict=False):
            below[:] = [
                upper if cell._tc.vMerge and spreading.allows(upper) else own
                for upper, own, cell in zip(above, below, row, strict=False)
            ]
        if rows:
            self._builder.table(rows, header=len(rows) > 1 and (bool(table.first_row) or looks_like_names(rows)))

    def _write_chart(self, element: Any) -> None:
        root = self._related(element, f"{_R}id")
        if root is not None:
            title, rows = chart_table(root)
            self._builder.text(f"Chart: {title}" if title else "")
            self._builder.table(rows)

    def _write_diagram(self, element: Any) -> None:
        """Write a SmartArt diagram, whose text is in a separate part that python-pptx does not read."""
        relation = element.find(f".//{_DGM}relIds")
        root = None if relation is None else self._related(relation, f"{_R}dm")
        if root is not None:
            texts = (" ".join("".join(point.itertext(f"{_A}t")).split()) for point in root.iter(f"{_DGM}pt"))
            self._builder.text("\n".join(f"- {text}" for text in texts if text))

    def _related(self, element: Any, attribute: str) -> Any:
        """Return the root of the part referenced by an attribute in the element; None if it was already written."""
        name = next((found.get(attribute) for found in element.iter() if found.get(attribute)), None)
        try:
            part = self._slide.part.related_part(name)
            if str(part.partname) in self._drawn:
                return None
            self._drawn.add(str(part.partname))
            return parse_xml(part.blob, str(part.partname))
        except (KeyError, BrokenDocument):
            self.warnings.append("a chart or diagram could not be read")
            return None


def reading_order(shapes: Iterable[Any]) -> list[Any]:
    """Sort shapes from top to bottom, and those beside each other from left to right.

    A shape is beside another if its middle is within the height of the first shape of the row. Shapes without a
    position of their own keep their order in the file.
    """
    placed: list[tuple[int, int, int, Any]] = []
    last = (0, 0, 0)
    for shape in shapes:
        place = _place(shape)
        last = place or last
        placed.append((*last, shape))
    placed.sort(key=lambda item: item[0])
    ordered: list[Any] = []
    row: list[tuple[int, int, int, Any]] = []
    for item in placed:
        if row and item[0] + item[2] / 2 > row[0][0] + row[0][2]:
            ordered.extend(shape for *_, shape in sorted(row, key=lambda member: member[1]))
            row = []
        row.append(item)
    return ordered + [shape for *_, shape in sorted(row, key=lambda member: member[1])]


def _place(shape: Any) -> tuple[int, int, int] | None:
    """Return top, left and height in EMU; None without a position."""
    try:
        top, left, height = shape.top, shape.left, shape.height
    except (KeyError, AttributeError):
        # A placeholder with a missing layout has nothing to inherit from.
        return None
    return None if top is None or left is None else (int(top), int(left), int(height or 0))


def paragraph_lines(element: Any, *, is_list: bool) -> list[str]:
    """Return the paragraphs of a shape as Markdown lines, with markers and indentation for list items.

    Args:
        element: element that contains `a:p`.
        is_list: True if paragraphs without bullet properties have a bullet.
    """
    found = [(paragraph, _paragraph_text(paragraph)) for paragraph in element.iter(f"{_A}p")]
    found = [(paragraph, text) for paragraph, text in found if text]
    lines = []
    for paragraph, text in found:
        properties = paragraph.find(f"{_A}pPr")
        level = 0 if properties is None else min(MAX_LEVEL, int(properties.get("lvl", 0)))
        marks = set() if properties is None else {child.tag.rpartition("}")[2] for child in properties}
        bulleted = bool(marks & {"buChar", "buAutoNum", "buBlip"}) or (is_list and len(found) > 1) or level > 0
        if bulleted and "buNone" not in marks:
            marker = "1." if "buAutoNum" in marks else "-"
            lines.append(f"{'  ' * level}{marker} {text}")
            continue
        if lines and _LIST_ITEM.match(lines[-1]):
            lines.append("")
        lines.append(text)
    return lines


def _paragraph_text(paragraph: Any) -> str:
    nodes = paragraph.iter(f"{_A}t", f"{_M}t", f"{_A}br")
    return " ".join("".join(" " if node.tag == f"{_A}br" else node.text or "" for node in nodes).split())


def chart_table(root: Any) -> tuple[str, list[list[str]]]:
    """Return a chart's title, and its categories and series as rows below the names of the series."""
    title = root.xpath("string(/*/*[local-name()='chart']/*[local-name()='title']/*[local-name()='tx'])")
    names: list[str] = []
    columns: list[dict[int, str]] = []
    categories: dict[int, str] = {}
    for series in root.iter("{*}ser"):
        names.append(" ".join(series.xpath("string(./*[local-name()='tx']//*[local-name()='v'])").split()))
        columns.append(_points(series, ("val", "yVal")))
        categories = _points(series, ("cat", "xVal")) | categories
    numbers = sorted({number for column in [*columns, categories] for number in column})
    values = [
        [categories.get(number, str(number + 1)), *(column.get(number, "") for column in columns)] for number in numbers
    ]
    return " ".join(str(title).split()), [["", *names], *values] if numbers else []


def _points(series: Any, names: tuple[str, ...]) -> dict[int, str]:
    """Map 0-based positions to values; nested categories, stored innermost first, are joined from the outermost."""
    points: dict[int, str] = {}
    for name in names:
        levels = series.xpath(f"./*[local-name()='{name}']//*[*[local-name()='pt']]")
        for level in reversed(levels[:MAX_CATEGORY_LEVELS]):
            outer = points
            starts = sorted(outer)
            points = {}
            for point in level.iterchildren("{*}pt"):
                number = int(point.get("idx", 0))
                place = bisect_right(starts, number)
                above = outer[starts[place - 1]] if place else ""
                value = _plain_number(point.findtext("{*}v") or "")
                points[number] = f"{above} / {value}" if above else value
    return points


def _plain_number(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return format(value, ".15g") if "." in text else text


def alternative_text(element: Any) -> str | None:
    """Return the author's alternative text of a shape."""
    properties = element.xpath("./*/*[local-name()='cNvPr']")
    return telling(properties[0].get("descr")) if properties else None


def telling(alternative: str | None) -> str | None:
    """Return an alternative text on one line, or None if it is uninformative (`image1.png`)."""
    text = " ".join(_GENERATED_ALT.split(alternative or "", maxsplit=1)[0].split())
    return None if _UNTELLING_ALT.fullmatch(text) else text


def _placeholder(shape: Any) -> str | None:
    """Return a placeholder's type as stored, None for the general one; `text` for shapes that are not placeholders."""
    found = shape._element.xpath("./*/p:nvPr/p:ph") if hasattr(shape, "_element") else []
    return found[0].get("type") if found else "text"


def _reveal_alternatives(root: Any) -> None:
    """Replace shapes with versions for newer and older programs by one version, readable as plain shapes."""
    for wrapper in list(root.iter(f"{_MC}AlternateContent")):
        fallback, choice = wrapper.find(f"{_MC}Fallback"), wrapper.find(f"{_MC}Choice")
        # Fallbacks of formulas and drawings are pictures of the same text.
        kept = max((found for found in (choice, fallback) if found is not None), key=_letters, default=None)
        parent = wrapper.getparent()
        if parent is None:
            continue
        for child in list(kept) if kept is not None else []:
            wrapper.addprevious(child)
        parent.remove(wrapper)


def _letters(element: Any) -> int:
    return sum(len(node.text or "") for node in element.iter(f"{_A}t", f"{_M}t"))
