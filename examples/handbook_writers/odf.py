"""OpenDocument: ODT texts and ODS spreadsheets, the parts written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .archive import archive
from .source import EDITION, Block, Heading, Items, Manuscript, Note, Paragraph, Table

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_NAMESPACES = " ".join(
    [
        *(f'xmlns:{name}="{_OASIS}:{name}:1.0"' for name in ("office", "text", "table", "meta", "style")),
        'xmlns:dc="http://purl.org/dc/elements/1.1/"',
    ]
)
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_TEXT = "application/vnd.oasis.opendocument.text"
_SPREADSHEET = "application/vnd.oasis.opendocument.spreadsheet"


def write_odt(manuscript: Manuscript) -> bytes:
    """The manuscript as an OpenDocument text."""
    body = "".join(_block(block) for page in manuscript.pages() for block in page)
    return _package(_TEXT, f"<office:text>{body}</office:text>", manuscript.title, manuscript.author)


def write_ods(book: Mapping[str, Any]) -> bytes:
    """An OpenDocument spreadsheet.

    Args:
        book: title, author, and sheets with name, columns and rows.
    """
    sheets = "".join(
        f"<table:table table:name={quoteattr(sheet['name'])}>{_rows([sheet['columns'], *sheet['rows']])}</table:table>"
        for sheet in book["sheet"]
    )
    body = f"<office:spreadsheet>{sheets}</office:spreadsheet>"
    return _package(_SPREADSHEET, body, book["title"], book["author"])


def _package(media_type: str, body: str, title: str, author: str) -> bytes:
    when = EDITION.strftime("%Y-%m-%dT%H:%M:%S")
    parts = {"/": media_type, "content.xml": "text/xml", "meta.xml": "text/xml"}
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{kind}"/>'
        for path, kind in parts.items()
    )
    manifest = f'xmlns:manifest="{_OASIS}:manifest:1.0" manifest:version="1.3"'
    return archive(
        {
            "mimetype": media_type,
            "META-INF/manifest.xml": f"{_DECLARATION}<manifest:manifest {manifest}>{entries}</manifest:manifest>",
            "content.xml": (
                f'{_DECLARATION}<office:document-content {_NAMESPACES} office:version="1.3">'
                f"<office:body>{body}</office:body></office:document-content>"
            ),
            "meta.xml": (
                f'{_DECLARATION}<office:document-meta {_NAMESPACES} office:version="1.3"><office:meta>'
                f"<dc:title>{escape(title)}</dc:title><dc:creator>{escape(author)}</dc:creator>"
                f"<meta:creation-date>{when}</meta:creation-date><dc:date>{when}</dc:date>"
                "</office:meta></office:document-meta>"
            ),
        }
    )


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f'<text:h text:outline-level="{level}">{escape(text)}</text:h>'
        case Paragraph() | Note():
            return _paragraph(block.text)
        case Items(texts):
            items = "".join(f"<text:list-item>{_paragraph(text)}</text:list-item>" for text in texts)
            return f"<text:list>{items}</text:list>"
        case Table(rows):
            return f'<table:table table:name="Table">{_rows(rows)}</table:table>'


def _rows(rows: Sequence[Sequence[Any]]) -> str:
    width = max(map(len, rows))
    shown = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
    return f'<table:table-column table:number-columns-repeated="{width}"/>{shown}'


def _cell(value: Any) -> str:
    match value:
        case int() | float():
            kind = f'office:value-type="float" office:value="{value}"'
        case date():
            kind = f'office:value-type="date" office:date-value="{value}"'
        case _:
            kind = 'office:value-type="string"'
    return f"<table:table-cell {kind}>{_paragraph(str(value))}</table:table-cell>"


def _paragraph(text: str) -> str:
    return f"<text:p>{escape(text)}</text:p>"
