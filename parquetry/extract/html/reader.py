"""Web pages: HTML as Markdown, without boilerplate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.html.blocks import BlockWriter
from parquetry.extract.html.content import MainContent, choose
from parquetry.extract.html.depth import MAX_DEPTH, without_depth
from parquetry.extract.html.metadata import page_metadata, page_title
from parquetry.extract.html.nodes import is_unseen
from parquetry.extract.html.shape import Blocks
from parquetry.extract.html.tables import is_layout_table, read_table
from parquetry.extract.scanning import Marks
from parquetry.model import Extraction, RawDocument, Scalar
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_META = re.compile(rb"<meta\b[^>]*", re.IGNORECASE)
_META_CHARSET = re.compile(rb"""charset\s*+=\s*+["']?\s*+([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""\s*<\?xml\b[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_XHTML = re.compile(
    r"^\s*(?:<\?xml\b|<!DOCTYPE\s+html\s+PUBLIC\s+\"-//W3C//DTD XHTML|<html\b[^>]*\bxmlns=)", re.IGNORECASE
)
_SELF_CLOSED = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-z][\w:-]*)((?:\s[^<>]*)?)/>",
    re.IGNORECASE,
)
_TABLE_LOOKS = 4
"""times the text of a page may be looked at for tables, which stand within each other"""
_CDATA = Marks(re.compile(r"<!\[CDATA\[()"), {"": re.compile(r"\]\]>")})


@dataclass(frozen=True, slots=True)
class Page:
    """Title and metadata of a page, and warnings from reading it."""

    title: str | None
    metadata: dict[str, Scalar]
    warnings: tuple[str, ...]


class WebExtractor(ListedExtractor):
    """Reads HTML pages."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        builder = TextBuilder()
        page = read_page(builder, document.content, main_only=settings.main_content_only)
        extraction = builder.build(
            title=page.title,
            metadata=page.metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=page.warnings,
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the page shows no text without running its scripts")
        return extraction


def add_html(builder: TextBuilder, html: str | bytes, *, main_only: bool) -> str | None:
    """Append a page or a fragment of a page as Markdown.

    Args:
        builder: receives headings, paragraphs, lists, tables and code.
        html: text, or bytes in any encoding.
        main_only: leave out navigation and other boilerplate.

    Returns:
        The title, if there is one.
    """
    return read_page(builder, html, main_only=main_only).title


def read_page(builder: TextBuilder, html: str | bytes, *, main_only: bool) -> Page:
    """Append a page as Markdown and return its title, metadata and warnings; see `add_html`."""
    from selectolax.lexbor import LexborHTMLParser

    warnings: list[str] = []
    if isinstance(html, bytes):
        text, encoding = decode(html, _declared(html))
        warnings += replaced(html, text, encoding)
    else:
        text = html
    text = _as_html(text.replace("\x00", ""))
    text, taken_out = without_depth(text)
    if taken_out:
        told = counted(taken_out, "element is", "elements are")
        warnings.append(
            f"too-deep: {told} nested more than {MAX_DEPTH} levels deep, and read as lines of what is around"
        )
    page = LexborHTMLParser(text)
    selection = choose(page, text) if main_only else MainContent.everything(page)
    warnings += selection.warnings
    if selection.heading:
        builder.heading(1, selection.heading)
    if selection.root is not None:
        BlockWriter(builder, Blocks.of(page), selection.dropped).write(selection.root)
    return Page(page_title(page), page_metadata(page), tuple(warnings))


def rows_of_tables(html: str, most: int) -> list[list[str]]:
    """Return cells of the rows of a page's tables of data, without reading the page.

    Args:
        html: text.
        most: maximum number of rows; a table is looked at as long as there are fewer.
    """
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(without_depth(_as_html(html.replace("\x00", "")))[0])
    rows: list[list[str]] = []
    left = _TABLE_LOOKS * len(html)
    for table in page.css("table"):
        left -= len(table.text() or "")
        if left < 0 or len(rows) >= most:
            break
        if not is_unseen(table) and not is_layout_table(table):
            rows += read_table(table)[0]
    return rows[:most]


def _declared(content: bytes) -> str | None:
    said = (_META_CHARSET.search(meta) for meta in _META.findall(content, 0, 8192))
    found = next(filter(None, said), None) or _XML_ENCODING.match(content, 0, 8192)
    return found[1].decode("ascii", "replace") if found else None


def _as_html(text: str) -> str:
    """Convert XHTML to HTML, in which `<title/>` and `<a id="x"/>` would swallow the text after them."""
    if not _XHTML.match(text[:2000]):
        return text
    return _SELF_CLOSED.sub(r"<\1\2></\1>", _CDATA.replace(text, str))
