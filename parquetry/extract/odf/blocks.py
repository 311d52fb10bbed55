"""Writes the elements of OpenDocument files as blocks of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from parquetry.extract.builder import TextBuilder
from parquetry.extract.grid import looks_like_names
from parquetry.extract.shapes import telling
from parquetry.extract.spreading import Spreading

MAX_REPEATED = 200
"""maximum repetitions of a text table's row or column that is stored once with a count"""

_LEFT_OUT = frozenset(
    {
        "tracked-changes", "sequence-decls", "variable-decls", "user-field-decls", "forms", "table-of-content",
        "illustration-index", "table-index", "object-index", "user-index", "alphabetical-index", "bibliography",
        "event-listeners", "notes", "page-thumbnail",
    }
)  # fmt: skip
_SET_APART = frozenset({"note", "annotation", "frame", "custom-shape", "rect", "g"})
_SILENT = frozenset({"annotation-end", "ruby-text", "hidden-text", "hidden-paragraph", "tracked-changes", "deletion"})
_HEADING_STYLE = re.compile(r"Heading(?:_20_|\s)(\d+)")
_LENGTH = re.compile(r"(-?(?:[0-9]{1,9}(?:\.[0-9]*+)?|\.[0-9]++))\s*+(cm|mm|in|pt|px)?")
_CENTIMETRES = {"cm": 1.0, "mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "px": 2.54 / 96}


def local(element: Any) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def named(element: Any, attribute: str) -> str | None:
    """Return an attribute by its local name."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == attribute), None)


class OdfStyles:
    """Heading levels and list numbering defined by the styles of a document.

    Args:
        roots: roots of `styles.xml` and `content.xml`.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self._parents: dict[str, str | None] = {}
        self._outline: dict[str, int] = {}
        self._ordered: dict[str, set[int]] = {}
        for root in roots:
            for style in root.iter("{*}style"):
                name = named(style, "name") or ""
                self._parents[name] = named(style, "parent-style-name")
                if level := _number(style, "default-outline-level", 0):
                    self._outline[name] = level
            for style in root.iter("{*}list-style"):
                self._ordered[named(style, "name") or ""] = {
                    _number(level, "level", 1)
                    for level in style.iter("{*}list-level-style-number")
                    if named(level, "num-format")
                }

    def heading_level(self, paragraph: Any) -> int | None:
        """Return the level of a heading, 1 for the outermost (titles included); None for body text."""
        if local(paragraph) == "h":
            return _number(paragraph, "outline-level", 1)
        name = named(paragraph, "style-name")
        for _ in range(20):
            if not name:
                return None
            if name == "Title":
                return 1
            if found := _HEADING_STYLE.fullmatch(name):
                return int(found[1])
            if name in self._outline:
                return self._outline[name]
            name = self._parents.get(name)
        return None

    def is_ordered(self, style: str | None, depth: int) -> bool:
        """Return True if a list of this style is numbered at a depth, 1 for the outermost."""
        return depth in self._ordered.get(style or "", ())


class OdfWriter:
    """Writes OpenDocument elements into a builder.

    Args:
        builder: receives the blocks.
        styles: styles of the document.
    """

    def __init__(self, builder: TextBuilder, styles: OdfStyles) -> None:
        self._builder = builder
        self._styles = styles
        self._notes: list[str] = []
        self._comments: list[str] = []
        self._spreading = Spreading()
        self.title: str | None = None
        """text of the first level-1 heading"""

    def write(self, element: Any) -> None:
        """Write an element and all its content."""
        kind = local(element)
        if kind in _LEFT_OUT or named(element, "display") == "none":
            return
        if kind in ("p", "h"):
            self._write_paragraph(element)
        elif kind == "list":
            lines: list[str] = []
            apart: list[Any] = []
            self._collect_list(element, 1, named(element, "style-name"), lines, apart)
            self._builder.text("\n".join(lines))
            self._write_all(apart)
        elif kind == "table":
            self._write_table(element)
        else:
            if kind in ("frame", "g", "custom-shape") and (alternative := _alternative(element)):
                self._builder.text(f"![{alternative}]")
            self._write_all(element)

    def write_notes(self) -> None:
        """Write the notes and comments collected since the last call."""
        self._builder.text("\n".join(self._notes))
        if self._comments:
            self._builder.text("Comments:\n" + "\n".join(f"- {comment}" for comment in self._comments))
        self._notes.clear()
        self._comments.clear()

    def _write_all(self, elements: Iterable[Any]) -> None:
        for element in elements:
            self.write(element)

    def _write_paragraph(self, paragraph: Any) -> None:
        apart: list[Any] = []
        text = self._text(paragraph, apart)
        level = self._styles.heading_level(paragraph)
        if level and text.strip():
            self._builder.heading(level, text)
            if level == 1:
                self.title = self.title or " ".join(text.split())
        else:
            self._builder.text(text)
        self._write_all(apart)

    def _text(self, paragraph: Any, apart: list[Any]) -> str:
        """Return a paragraph's text with numbers for its notes; add frames to `apart`, to be written afterwards."""

        def set_apart(element: Any) -> str:
            kind = local(element)
            if kind == "note":
                body = element.find("{*}note-body")
                said = " ".join(" ".join(map(paragraph_text, body.iter("{*}p"))).split()) if body is not None else ""
                self._notes.append(f"[{len(self._notes) + 1}] {said}")
                return f"[{len(self._notes)}]"
            if kind == "annotation":
                said = " ".join(" ".join(map(paragraph_text, element.iter("{*}p"))).split())
                author = element.findtext("{*}creator")
                self._comments.append(f"{author}: {said}" if author else said)
                return ""
            apart.append(element)
            return ""

        return "".join(_pieces(paragraph, set_apart))

    def _collect_list(self, element: Any, depth: int, style: str | None, lines: list[str], apart: list[Any]) -> None:
        style = named(element, "style-name") or style
        ordered = self._styles.is_ordered(style, depth)
        number = 0
        for item in element:
            if local(item) not in ("list-item", "list-header"):
                continue
            marked = False
            for child in item:
                kind = local(child)
                if kind == "list":
                    self._collect_list(child, depth + 1, style, lines, apart)
                elif kind in ("p", "h") and self._styles.heading_level(child) is None:
                    text = " ".join(self._text(child, apart).split())
                    number += not marked
                    marker = "  " if marked else f"{number}." if ordered else "-"
                    if text:
                        lines.append(f"{'  ' * (depth - 1)}{marker} {text}")
                        marked = True
                else:
                    # Numbered headings are list items; text before them has to be written first here as well.
                    self._builder.text("\n".join(lines))
                    lines.clear()
                    self.write(child)

    def _write_table(self, table: Any) -> None:
        rows: list[list[str]] = []
        apart: list[Any] = []
        for row in _rows(table):
            cells: list[str] = []
            for cell in row:
                repeated = min(_number(cell, "number-columns-repeated", 1), MAX_REPEATED)
                if local(cell) == "covered-table-cell":
                    above = _covered_by(rows, cells, len(cells))
                    cells.extend([above if self._spreading.allows(above, repeated) else ""] * repeated)
                elif local(cell) == "table-cell":
                    texts = (" ".join(self._text(p, apart).split()) for p in _outer_paragraphs(cell))
                    text = "; ".join(filter(None, texts)) if len(cell) > 1 else " ".join(texts)
                    cells.extend([text] * (repeated if self._spreading.allows(text, repeated - 1) else 1))
            repeated = min(_number(row, "number-rows-repeated", 1), MAX_REPEATED)
            size = sum(map(len, cells)) + len(cells)
            rows.extend([cells] * (repeated if self._spreading.allows_characters(size * (repeated - 1)) else 1))
        rows = [row for row in rows if any(row)]
        if rows and max(map(len, rows)) == 1:
            self._builder.text("\n".join(row[0] for row in rows))
        elif rows:
            has_header = table.find("{*}table-header-rows") is not None
            self._builder.table(rows, header=len(rows) > 1 and (has_header or looks_like_names(rows)))
        self._write_all(apart)


def drawn_order(elements: Iterable[Any]) -> list[Any]:
    """Sort frames of a slide from top to bottom and left to right; those within a centimetre are in one row."""
    return sorted(elements, key=lambda frame: (round(_centimetres(named(frame, "y"))), _centimetres(named(frame, "x"))))


def paragraph_text(paragraph: Any) -> str:
    """Return the words of a paragraph without its notes, comments and frames."""
    return "".join(_pieces(paragraph, lambda _: ""))


def _pieces(element: Any, set_apart: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        kind = local(child)
        if kind == "s":
            yield " " * min(_number(child, "c", 1), 100)
        elif kind == "tab":
            yield "\t"
        elif kind == "line-break":
            yield "\n"
        elif kind in _SET_APART:
            yield set_apart(child)
        elif kind not in _SILENT:
            yield from _pieces(child, set_apart)
        yield child.tail or ""


def _rows(table: Any) -> Iterator[Any]:
    for child in table:
        if local(child) == "table-row":
            yield child
        elif local(child) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(child)


def _outer_paragraphs(cell: Any) -> Iterator[Any]:
    """Yield the paragraphs of a cell and of tables in it, without those inside paragraphs: notes and frames."""
    for child in cell:
        if local(child) in ("p", "h"):
            yield child
        else:
            yield from _outer_paragraphs(child)


def _covered_by(rows: list[list[str]], cells: list[str], column: int) -> str:
    """Return the value of a merged cell, from the left in this row or from above."""
    if cells and cells[-1]:
        return cells[-1]
    return rows[-1][column] if rows and column < len(rows[-1]) else ""


def _alternative(element: Any) -> str | None:
    return telling(element.findtext("{*}desc")) or telling(element.findtext("{*}title"))


def _number(element: Any, attribute: str, default: int) -> int:
    """Return an integer attribute; the default for any other value."""
    value = named(element, attribute) or ""
    return int(value) if re.fullmatch("[0-9]{1,9}", value) else default


def _centimetres(length: str | None) -> float:
    found = _LENGTH.match(length or "")
    return float(found[1]) * _CENTIMETRES[found[2] or "cm"] if found else 0.0
