"""PPTX, through python-pptx."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from pptx import Presentation
from pptx.util import Inches

from .archive import repack
from .source import EDITION, Block, Items, Manuscript, Note, Paragraph, Table

_TITLE_AND_CONTENT, _TITLE_ONLY = 1, 5
"""layouts of python-pptx's own template"""


def write_pptx(manuscript: Manuscript) -> bytes:
    """One slide per level-1 heading; block quotes become the speaker's notes."""
    deck = Presentation()
    properties = deck.core_properties
    properties.title, properties.author = manuscript.title, manuscript.author
    properties.created = properties.modified = EDITION.replace(tzinfo=None)
    properties.last_modified_by = manuscript.author
    for title, blocks in manuscript.sections():
        _add_slide(deck, title, blocks)
    buffer = io.BytesIO()
    deck.save(buffer)
    return repack(buffer.getvalue())


def _add_slide(deck: Any, title: str, blocks: Sequence[Block]) -> None:
    table = next((block for block in blocks if isinstance(block, Table)), None)
    slide = deck.slides.add_slide(deck.slide_layouts[_TITLE_ONLY if table else _TITLE_AND_CONTENT])
    slide.shapes.title.text = title
    lines: list[str] = []
    for block in blocks:
        match block:
            case Paragraph():
                lines.append(block.text)
            case Items(texts):
                lines += texts
            case Note(text):
                slide.notes_slide.notes_text_frame.text = text
    if table:
        _add_table(slide, table)
    else:
        slide.placeholders[1].text_frame.text = "\n".join(lines)


def _add_table(slide: Any, table: Table) -> None:
    shape = slide.shapes.add_table(
        len(table.rows), len(table.rows[0]), Inches(0.7), Inches(1.8), Inches(8.6), Inches(0.5 * len(table.rows))
    )
    for row, cells in enumerate(table.rows):
        for column, cell in enumerate(cells):
            shape.table.cell(row, column).text = cell
