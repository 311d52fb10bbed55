"""Word documents and PowerPoint presentations in the binary formats of 1997 to 2003, by office-oxide."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import MAX_FILLING, TextBuilder, one_line
from parquetry.extract.compound_file import check_chains
from parquetry.extract.media_types import DOC, PPT
from parquetry.extract.titles import useful_title
from parquetry.model import Extraction, RawDocument, Scalar

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_FORMATS: dict[str, Literal["doc", "ppt"]] = {DOC: "doc", PPT: "ppt"}
_METADATA = ("author", "last_modified_by", "created", "modified", "subject", "keywords", "description", "company")
_LINES = frozenset({"line_break", "page_break", "column_break"})
_MESSAGE_CHARACTERS = 200


@cache
def available() -> bool:
    """Return True if the `office` extra is installed."""
    return importlib.util.find_spec("office_oxide") is not None


class OldOfficeExtractor(ListedExtractor):
    """Reads `.doc` and `.ppt`: a document with its headings, lists and tables, and a presentation by slides."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        """Extract one document or presentation.

        Raises:
            BrokenDocument: `damaged` or `encrypted`.
        """
        read = _read(document.content, _FORMATS[media_type])
        told = read["metadata"]
        metadata: dict[str, Scalar] = {key: _line(told.get(key)) for key in _METADATA}
        warnings = ["the reader has cut its text"] if told.get("text_truncated") else []
        builder = TextBuilder()
        first: str | None = None
        slides = media_type == PPT
        for number, section in enumerate(read["sections"], start=1):
            if slides:
                builder.part("slide", number)
            writer = _Writer(builder)
            writer.add(section.get("elements") or ())
            if slides and section.get("speaker_notes"):
                writer.add_notes(section["speaker_notes"])
            if slides and section.get("hidden"):
                warnings.append(f"slide {number} is hidden; its text is indexed")
            first = first or writer.first
        if slides:
            metadata["slides"] = len(read["sections"])
        return builder.build(
            title=useful_title(told.get("title")) or first,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


def _read(content: bytes, kind: Literal["doc", "ppt"]) -> dict[str, Any]:
    """Return the document as office-oxide structures it: `metadata`, and `sections` of `elements`."""
    from office_oxide import Document, OfficeOxideError

    check_chains(content)
    try:
        return Document.from_bytes(content, kind).to_ir()
    except OfficeOxideError as error:
        message = one_line(str(error))[:_MESSAGE_CHARACTERS]
        if "password-protected" in message:
            raise BrokenDocument("encrypted", "the document is protected with a password") from error
        raise BrokenDocument("damaged", f"it cannot be read as .{kind}: {message}") from error


class _Writer:
    """Adds the elements of a section to a text.

    Args:
        builder: receives the text.
    """

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self.first: str | None = None
        """first heading of level 1"""

    def add(self, elements: Sequence[Mapping[str, Any]]) -> None:
        """Add elements in their order; those of an unknown kind as their text."""
        for element in elements:
            kind = element.get("type")
            if kind == "heading":
                self._add_heading(int(element.get("level") or 1), one_line(_text(element)))
            elif kind == "table":
                self._add_table(element.get("rows") or ())
            elif kind == "list":
                self._builder.text("\n".join(_items(element, 0)))
            else:
                self._builder.text(_text(element))

    def add_notes(self, notes: Any) -> None:
        """Add what a speaker noted beside a slide."""
        text = notes if isinstance(notes, str) else "\n\n".join(map(_text, notes))
        if text.strip():
            self._builder.text(f"Notes: {text.strip()}")

    def _add_heading(self, level: int, title: str) -> None:
        self._builder.heading(level, title)
        if level == 1 and title and self.first is None:
            self.first = title

    def _add_table(self, rows: Sequence[Mapping[str, Any]]) -> None:
        table = []
        for row in rows:
            cells: list[str] = []
            for cell in row.get("cells") or ():
                cells.append(_text(cell))
                cells += [""] * min(MAX_FILLING, int(cell.get("col_span") or 1) - 1)
            table.append(cells)
        self._builder.table(table)


def _items(element: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a list; items without text are left out."""
    number = int(element.get("start_number") or 1)
    for item in element.get("items") or ():
        text = one_line(_text(item))
        if text:
            mark = f"{number}." if element.get("ordered") else "-"
            yield f"{'  ' * depth}{mark} {text}"
            number += 1
        nested = item.get("nested")
        if nested:
            yield from _items(nested, depth + 1)


def _text(node: Mapping[str, Any]) -> str:
    """Return the text of anything that has content, its paragraphs on lines of their own."""
    if isinstance(node.get("text"), str):
        return str(node["text"])
    if node.get("type") in _LINES:
        return "\n"
    within = [each for key in ("content", "elements") for each in node.get(key) or () if isinstance(each, Mapping)]
    pieces: list[str] = []
    for each in within:
        inline = isinstance(each.get("text"), str) or each.get("type") in _LINES
        pieces.append(_text(each) if inline else f"\n{_text(each)}\n")
    if node.get("type") == "list":
        pieces += [f"\n{line}\n" for line in _items(node, 0)]
    if node.get("type") == "table":
        rows = node.get("rows") or ()
        pieces += [" | ".join(one_line(_text(cell)) for cell in row.get("cells") or ()) + "\n" for row in rows]
    return "".join(pieces).strip("\n")


def _line(value: object) -> str:
    """Return a value of the metadata as one line."""
    if isinstance(value, list):
        return ", ".join(one_line(str(each)) for each in value)
    return one_line(str(value)) if value else ""
