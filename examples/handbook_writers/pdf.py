"""PDF: flowing text in one or two columns, locked against changes, or scanned."""

from __future__ import annotations

import io
from typing import Any

from reportlab import rl_config
from reportlab.lib import colors, pdfencrypt
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    ListFlowable,
    ListItem,
    PageBreak,
    PageTemplate,
    TableStyle,
)
from reportlab.platypus import Paragraph as Flow
from reportlab.platypus import Table as Grid

from .pictures import scan
from .source import Block, Heading, Items, Manuscript, Note, Paragraph, Table

rl_config.useA85 = 0
"""images as they are: text encoding makes them a quarter larger"""

_MARGIN = 22 * mm
_GUTTER = 8 * mm

_BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10.5, leading=15, spaceAfter=7)
_CELL = ParagraphStyle("cell", parent=_BODY, fontSize=9.5, leading=12, spaceAfter=0)
_HEADINGS = {
    1: ParagraphStyle("h1", parent=_BODY, fontName="Helvetica-Bold", fontSize=20, leading=25, spaceAfter=10),
    2: ParagraphStyle(
        "h2", parent=_BODY, fontName="Helvetica-Bold", fontSize=13, leading=17, spaceBefore=8, keepWithNext=1
    ),
}


class _Outlined(BaseDocTemplate):
    """A document whose headings are also its bookmarks."""

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802 (reportlab calls it)
        levels = {style.name: level for level, style in _HEADINGS.items()}
        if isinstance(flowable, Flow) and (level := levels.get(flowable.style.name)):
            place = f"heading-{self.seq.nextf('heading')}"
            self.canv.bookmarkPage(place)
            self.canv.addOutlineEntry(flowable.getPlainText(), place, level - 1)


def write_pdf(manuscript: Manuscript) -> bytes:
    """The manuscript as a PDF.

    Properties of the manuscript: `columns`, `outline` (bookmarks), `owner_password` and `scanned`.
    """
    if manuscript.properties.get("scanned"):
        return _write_scanned(manuscript)
    buffer = io.BytesIO()
    template = _Outlined if manuscript.properties.get("outline") else BaseDocTemplate
    document = template(
        buffer,
        pagesize=A4,
        title=manuscript.title,
        author=manuscript.author,
        subject=manuscript.properties.get("subject", ""),
        creator="Hollin & Reed office",
        invariant=1,
        pageCompression=0,
        encrypt=_lock(manuscript.properties.get("owner_password")),
    )
    document.addPageTemplates(
        PageTemplate(frames=_frames(manuscript.properties.get("columns", 1)), onPageEnd=_footer(manuscript.title))
    )
    story: list[Flowable] = []
    for number, page in enumerate(manuscript.pages()):
        if number:
            story.append(PageBreak())
        story += [_flowable(block) for block in page]
    document.build(story)
    return buffer.getvalue()


def _lock(owner_password: str | None) -> Any:
    """Readable by everybody without a password; 128 bits, because stronger keys are drawn at random."""
    if owner_password is None:
        return None
    return pdfencrypt.StandardEncryption("", owner_password, canModify=0, canAnnotate=0, strength=128)


def _frames(columns: int) -> list[Frame]:
    width = (A4[0] - 2 * _MARGIN - (columns - 1) * _GUTTER) / columns
    return [
        Frame(_MARGIN + column * (width + _GUTTER), _MARGIN, width, A4[1] - 2 * _MARGIN, 0, 0, 0, 0)
        for column in range(columns)
    ]


def _footer(title: str) -> Any:
    def draw(canvas: Canvas, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.setFillColor(colors.grey)
        canvas.drawString(_MARGIN, 12 * mm, title)
        canvas.drawRightString(A4[0] - _MARGIN, 12 * mm, str(document.page))

    return draw


def _flowable(block: Block) -> Flowable:
    match block:
        case Heading(level, text):
            return Flow(_escape(text), _HEADINGS[level])
        case Paragraph() | Note():
            return Flow(_escape(block.text), _BODY)
        case Items(texts, ordered):
            items = [ListItem(Flow(_escape(text), _BODY)) for text in texts]
            return ListFlowable(items, bulletType="1" if ordered else "bullet")
        case Table(rows):
            cells = [[Flow(_escape(cell), _CELL) for cell in row] for row in rows]
            style = TableStyle(
                [
                    ("GRID", (0, 0), (-1, -1), 0.5, colors.grey),
                    ("BACKGROUND", (0, 0), (-1, 0), colors.whitesmoke),
                    ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ]
            )
            return Grid(cells, style=style, spaceBefore=4, spaceAfter=10, hAlign="LEFT")


def _write_scanned(manuscript: Manuscript) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1, pageCompression=0)
    canvas.setTitle(manuscript.title)
    canvas.setAuthor(manuscript.author)
    canvas.setCreator("Hollin & Reed office scanner")
    for page in manuscript.pages():
        canvas.drawImage(ImageReader(io.BytesIO(scan(page))), 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
