"""EPUB 3: one XHTML file per chapter, with a table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from .archive import archive
from .source import EDITION, Block, Heading, Items, Manuscript, Note, Paragraph, Table

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_XHTML = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en"'


def write_epub(manuscript: Manuscript) -> bytes:
    """The manuscript as an e-book; every level-1 heading starts a chapter."""
    chapters = manuscript.sections()
    container = (
        f'{_DECLARATION}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    members = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OEBPS/content.opf": _package(manuscript, len(chapters)),
        "OEBPS/nav.xhtml": _navigation([title for title, _ in chapters]),
    }
    for number, (title, blocks) in enumerate(chapters, start=1):
        members[f"OEBPS/chapter-{number}.xhtml"] = _page(title, f"<h1>{escape(title)}</h1>{_html(blocks)}")
    return archive(members)


def _package(manuscript: Manuscript, chapters: int) -> str:
    numbers = range(1, chapters + 1)
    items = "".join(f'<item id="c{n}" href="chapter-{n}.xhtml" media-type="application/xhtml+xml"/>' for n in numbers)
    spine = "".join(f'<itemref idref="c{n}"/>' for n in numbers)
    when = EDITION.strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f'{_DECLARATION}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<dc:identifier id="id">urn:hollin-reed:first-year</dc:identifier>'
        f"<dc:title>{escape(manuscript.title)}</dc:title><dc:creator>{escape(manuscript.author)}</dc:creator>"
        f'<dc:language>en</dc:language><dc:date>{when}</dc:date><meta property="dcterms:modified">{when}</meta>'
        '</metadata><manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        f"{items}</manifest><spine>{spine}</spine></package>"
    )


def _navigation(titles: Sequence[str]) -> str:
    links = "".join(
        f'<li><a href="chapter-{number}.xhtml">{escape(title)}</a></li>' for number, title in enumerate(titles, start=1)
    )
    return _page("Contents", f'<nav epub:type="toc"><h1>Contents</h1><ol>{links}</ol></nav>')


def _page(title: str, body: str) -> str:
    return f"{_DECLARATION}<html {_XHTML}><head><title>{escape(title)}</title></head><body>{body}</body></html>"


def _html(blocks: Sequence[Block]) -> str:
    shown = ""
    for block in blocks:
        match block:
            case Heading(level, text):
                shown += f"<h{level}>{escape(text)}</h{level}>"
            case Paragraph() | Note():
                shown += f"<p>{escape(block.text)}</p>"
            case Items(texts, ordered):
                tag = "ol" if ordered else "ul"
                shown += f"<{tag}>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</{tag}>"
            case Table(rows):
                cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
                shown += f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
    return shown
