"""XML: feeds, records and documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TABLE_BLOCK_CHARACTERS, TextBuilder
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.feeds import add_feed, is_feed
from parquetry.extract.html.reader import add_html, read_page
from parquetry.extract.xml.articles import INFORMATION, TITLES, is_article, write_article
from parquetry.extract.xml.names import MAX_LEVEL, local_name, text_of, title_of
from parquetry.extract.xml.tables import is_table, table_html
from parquetry.extract.xml.tree import parse
from parquetry.model import Extraction, RawDocument
from parquetry.plural import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parquetry.settings.extraction import ExtractionSettings

MAX_DEPTH = 200
"""levels below the root at which elements are still distinguished; real documents have tens"""
_DECLARED = re.compile(rb"""\A[^<]{0,8}<\?xml\b[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_TITLES = frozenset({"title", "head", "heading", "caption"})
_IGNORED_ATTRIBUTES = frozenset({"schemaLocation", "noNamespaceSchemaLocation", "space", "style", "class"})
_SHORT = 80


class MarkupExtractor(ListedExtractor):
    """Reads XML."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        declared = _DECLARED.search(document.content[:200])
        text, encoding = decode(document.content, declared[1].decode("ascii") if declared else None)
        warnings = list(replaced(document.content, text, encoding))
        builder = TextBuilder()
        root, told = parse(text)
        warnings += told
        title: str | None = None
        if local_name(root) == "html":
            page = read_page(builder, text, main_only=settings.main_content_only)
            title = page.title
            warnings += page.warnings
        elif is_feed(root):
            title = add_feed(builder, root)
        else:
            article = title_of(root, TITLES, INFORMATION) if is_article(root) else None
            title = text_of(article) if article is not None else _title(root)
            warnings += _Writer(builder).write(root)
        extraction = builder.build(
            title=title,
            metadata={"root": local_name(root)},
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the elements hold no text")
        return extraction


def _title(root: Element) -> str | None:
    for child in (*root, *(inner for outer in list(root)[:3] for inner in outer)):
        if local_name(child) in ("title", "Title") and len(child) == 0 and (title := text_of(child)):
            return title[:300]
    return None


class _Writer:
    """Writes elements: running text as paragraphs, titles as headings, records as tables or lines of `name: value`."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._lines: list[str] = []

    def write(self, root: Element) -> list[str]:
        """Write all elements; return warnings."""
        too_deep = 0
        warnings: list[str] = []
        # Each entry is an element, its depth, and the level of the heading above; None ends a block.
        left: list[tuple[Element | None, int, int]] = [(root, 0, 0)]
        while left:
            element, depth, level = left.pop()
            if element is None:
                self._end_block()
            elif not isinstance(element.tag, str):
                continue
            elif depth > MAX_DEPTH:
                too_deep += 1
                self._end_block()
                self._builder.text(text_of(element))
            elif is_article(element):
                self._end_block()
                warnings += write_article(self._builder, element, level)
            elif is_table(element):
                self._end_block()
                add_html(self._builder, table_html(element), main_only=False)
            elif _is_running_text(element):
                self._add_text(element, level)
            elif (rows := _as_table(element)) is not None:
                self._end_block()
                self._add_label(element)
                self._end_block()
                self._builder.table(rows)
            else:
                self._add_label(element)
                level = min(level + (title_of(element, _TITLES) is not None), MAX_LEVEL)
                left.append((None, depth, level))
                left.extend((child, depth + 1, level) for child in reversed(element))
        self._end_block()
        told = counted(too_deep, "element is", "elements are")
        deep = [f"too-deep: {told} nested deeper than {MAX_DEPTH} levels, and read as text"] if too_deep else []
        return warnings + deep

    def _add_text(self, element: Element, level: int) -> None:
        text = text_of(element)
        label = local_name(element)
        if label in _TITLES and text:
            self._end_block()
            self._builder.heading(max(1, level), text)
            return
        described = _attributes(element)
        shown = f"{label} ({described})" if described else label
        if len(element) or len(text) > 4 * _SHORT:
            # A paragraph needs no name.
            self._end_block()
            self._builder.text(text)
        elif text:
            self._lines.append(f"{shown}: {text}")
        elif described:
            self._lines.append(shown)

    def _add_label(self, element: Element) -> None:
        described = _attributes(element)
        if described or any(len(child) == 0 and local_name(child) not in _TITLES for child in element):
            self._end_block()
            self._lines.append(f"{local_name(element)} ({described})" if described else local_name(element))

    def _end_block(self) -> None:
        # A name with nothing below it carries no information.
        if len(self._lines) > 1 or any(":" in line or "(" in line for line in self._lines):
            self._builder.text("\n".join(self._lines))
        self._lines.clear()


def _is_running_text(element: Element) -> bool:
    """Return True if the element has text between its children, as a paragraph does, or has no children."""
    if len(element) == 0:
        return True
    return bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)


def _attributes(element: Element) -> str:
    described = []
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        value = " ".join(value.split())
        if key not in _IGNORED_ATTRIBUTES and value and len(value) <= _SHORT:
            described.append(f"{key}={value}")
    return ", ".join(described)


def _as_table(element: Element) -> list[list[str]] | None:
    """Return records below an element as rows with a header, if they share name and fields and hold only texts."""
    records = [child for child in element if isinstance(child.tag, str)]
    if len(records) < 2 or len({child.tag for child in records}) > 1 or (element.text or "").strip():
        return None
    rows = [_fields(record) for record in records]
    fields: dict[str, int] = {}
    characters = 0
    for row in rows:
        if row is None or len({key for key, _ in row}) < len(row):
            return None
        for key, value in row:
            fields.setdefault(key, len(fields))
            characters += len(value)
    filled = sum(len(row) for row in rows if row)
    if len(fields) < 2 or filled < len(rows) * len(fields) / 2 or characters / len(rows) > TABLE_BLOCK_CHARACTERS / 2:
        return None
    table = [list(fields)]
    for row in rows:
        line = [""] * len(fields)
        for key, value in row or ():
            line[fields[key]] = value
        table.append(line)
    return table


def _fields(record: Element) -> Sequence[tuple[str, str]] | None:
    if any(len(child) or child.attrib or (child.tail or "").strip() for child in record) or (record.text or "").strip():
        return None
    fields = [(key.rpartition("}")[2], value) for key, value in record.attrib.items()]
    return [*fields, *((local_name(child), text_of(child)) for child in record if isinstance(child.tag, str))]
