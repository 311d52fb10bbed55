"""Text over the cells of a sheet: comments, text boxes, titles of charts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package

_PERSONS = "xl/persons/person.xml"
_SHAPES = ("sp", "graphicFrame", "pic")


@dataclass(frozen=True, slots=True)
class SheetNote:
    """A text over the cells."""

    head: str
    """label such as `Comment on B4`; empty for a text box"""
    author: str
    text: str

    def __str__(self) -> str:
        head = f"{self.head} by {self.author}" if self.head and self.author else self.head
        return f"{head}: {self.text}" if head else self.text


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell, such as `B4`, for its 0-based row and column."""
    letters, column = "", column + 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"


class SheetNotes:
    """Reads the notes of the sheets of an XLSX or XLSB workbook; each part once, whichever sheets refer to it.

    Args:
        package: package of the workbook.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self._seen: set[str] = set()
        self._names: dict[str, str] | None = None

    def of(self, part: str) -> list[SheetNote]:
        """Return the notes of a sheet.

        Args:
            part: name of the sheet's part.
        """
        related = self._related(part)
        threads = [note for kind, target in related if kind == "threadedComment" for note in self._threaded(target)]
        answered = {note.head for note in threads}
        notes = [note for kind, target in related if kind == "comments" for note in self._comments(target)]
        drawn = [note for kind, target in related if kind == "drawing" for note in self._drawing(target)]
        # Beside a thread, its first comment is stored for programs that know no threads.
        return [*threads, *(note for note in notes if note.head not in answered), *drawn]

    def _related(self, part: str) -> list[tuple[str, str]]:
        """Return the kind and the part of each relation of a part."""
        folder, name = posixpath.split(part)
        root = self._xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        if root is None:
            return []
        return [
            (
                (one.get("Type") or "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, one.get("Target") or "")).lstrip("/"),
            )
            for one in root.iter("{*}Relationship")
            if one.get("TargetMode") != "External"
        ]

    def _xml(self, part: str) -> Any | None:
        """Return the root of a part that was not read before; None if it cannot be read."""
        if part in self._seen or part not in self._package:
            return None
        self._seen.add(part)
        try:
            return self._package.xml(part)
        except BrokenDocument:
            return None

    def _comments(self, part: str) -> Iterator[SheetNote]:
        root = self._xml(part)
        if root is None:
            return
        authors = ["".join(author.itertext()).strip() for author in root.iter("{*}author")]
        for comment in root.iter("{*}comment"):
            number = comment.get("authorId") or ""
            author = authors[int(number)] if number.isdecimal() and int(number[:9]) < len(authors) else ""
            text = "".join("".join(one.itertext()) for one in comment.iter("{*}t")).strip()
            # Excel begins the text of a comment with its author's name.
            if author and text.startswith(f"{author}:"):
                text = text[len(author) + 1 :].strip()
            if text:
                yield SheetNote(f"Comment on {comment.get('ref') or '?'}", author, text)

    def _threaded(self, part: str) -> Iterator[SheetNote]:
        root = self._xml(part)
        if root is None:
            return
        for comment in root.iter("{*}threadedComment"):
            text = "".join("".join(one.itertext()) for one in comment.iter("{*}text")).strip()
            if text:
                author = self._persons().get(comment.get("personId") or "", "")
                yield SheetNote(f"Comment on {comment.get('ref') or '?'}", author, text)

    def _persons(self) -> dict[str, str]:
        if self._names is None:
            root = self._xml(_PERSONS)
            people = [] if root is None else root.iter("{*}person")
            self._names = {one.get("id") or "": one.get("displayName") or "" for one in people}
        return self._names

    def _drawing(self, part: str) -> Iterator[SheetNote]:
        related = self._related(part)
        root = self._xml(part)
        if root is None:
            return
        for shape in root.iter(*(f"{{*}}{name}" for name in _SHAPES)):
            text = _paragraphs(shape)
            if not text:
                described = next(shape.iter("{*}cNvPr"), None)
                text = "" if described is None else (described.get("descr") or "").strip()
            if text:
                yield SheetNote("", "", text)
        for kind, target in related:
            other = self._xml(target) if kind in ("chart", "diagramData") else None
            if other is not None:
                yield from _chart(other) if kind == "chart" else _texts(other)


def _chart(root: Any) -> Iterator[SheetNote]:
    titles = [" ".join(_paragraphs(title).split()) for title in root.iter("{*}title")]
    series = [
        "".join(value.itertext()).strip()
        for name in root.iterfind(".//{*}ser/{*}tx")
        for value in list(name.iter("{*}v"))[:1]
    ]
    shown = [*filter(None, titles), *([", ".join(filter(None, series))] if any(series) else [])]
    if shown:
        yield SheetNote("Chart", "", "; ".join(shown))


def _texts(root: Any) -> Iterator[SheetNote]:
    text = _paragraphs(root)
    if text:
        yield SheetNote("", "", text)


def _paragraphs(element: Any) -> str:
    """Return the text of all paragraphs of DrawingML within an element, one a line."""
    lines = ("".join("".join(run.itertext()) for run in line.iter("{*}t")) for line in element.iter("{*}p"))
    return "\n".join(line.strip() for line in lines if line.strip())
