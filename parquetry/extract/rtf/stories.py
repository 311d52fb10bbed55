"""The blocks of a rich text: paragraphs, list items and rows of tables, as control words build them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from parquetry.extract.builder import TextBuilder
from parquetry.extract.grid import looks_like_names

TABLE_OF_CONTENTS = 0
"""level of a line of a table of contents, which is left out: it repeats the headings"""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item or a row of a table."""

    text: str
    level: int | None = None
    """level of a heading, 1 for the outermost; None for body text"""
    item: bool = False
    """True for a list item, whose text begins with its marker"""
    row: tuple[str, ...] = ()
    """cells of a row"""


@dataclass(slots=True)
class Story:
    """A sequence of blocks with a paragraph in work: the body, a note, a text box."""

    blocks: list[Block] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    """text of the paragraph or cell in work"""
    cells: list[str] = field(default_factory=list)
    """finished cells of the row in work"""
    apart: list[Block] = field(default_factory=list)
    """blocks of text boxes anchored in the paragraph in work"""
    marker: str = ""
    """number or sign of the list item in work"""

    def end_paragraph(self, level: int | None, depth: int, *, in_table: bool) -> None:
        """Finish the paragraph in work; within a cell it is a line of the cell."""
        if in_table:
            self.pieces.append("\n")
            return
        self.end_row()
        text = "".join(self.pieces).strip()
        self.pieces.clear()
        if level == TABLE_OF_CONTENTS:
            pass
        elif text and self.marker and level is None:
            line = f"{'  ' * depth}{self.marker} {' '.join(text.split())}"
            self.blocks.append(Block(line, item=True))
        elif text:
            self.blocks.append(Block(f"{self.marker} {text}" if self.marker[:-1] else text, level))
        self.marker = ""
        self._set_down()

    def end_cell(self) -> None:
        """Finish the cell in work."""
        marker = f"{self.marker} " if self.marker else ""
        self.marker = ""
        self.cells.append(marker + "; ".join(filter(None, map(str.strip, "".join(self.pieces).split("\n")))))
        self.pieces.clear()

    def end_row(self) -> None:
        """Finish the row in work; no effect outside a table."""
        if not self.cells:
            return
        if "".join(self.pieces).strip():
            self.end_cell()
        self.blocks.append(Block("", row=tuple(self.cells)))
        self.cells.clear()
        self._set_down()

    def finish(self) -> None:
        """Finish what is in work when a story ends."""
        self.end_paragraph(None, 0, in_table=False)

    def as_line(self) -> str:
        """Return the whole text on one line, for a note or a property."""
        self.finish()
        return " ".join(" ".join(block.text or " ".join(block.row) for block in self.blocks).split())

    def _set_down(self) -> None:
        self.blocks.extend(self.apart)
        self.apart.clear()


@dataclass(slots=True)
class RichText:
    """The contents of a rich text."""

    body: Story = field(default_factory=Story)
    notes: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    running: dict[str, None] = field(default_factory=dict)
    """distinct texts at the edges of pages"""
    properties: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    """False if the file ends within a group"""


def write_blocks(builder: TextBuilder, blocks: list[Block]) -> str | None:
    """Write blocks into a builder.

    Returns:
        The first heading of level 1.
    """
    first: str | None = None
    for (is_row, is_item), group in groupby(blocks, key=lambda block: (bool(block.row), block.item)):
        if is_row:
            rows = [list(block.row) for block in group]
            if max(map(len, rows)) == 1:
                builder.text("\n".join(row[0] for row in rows))
            else:
                builder.table(rows, header=len(rows) > 1 and looks_like_names(rows))
        elif is_item:
            builder.text("\n".join(block.text for block in group))
        else:
            for block in group:
                if block.level is None:
                    builder.text(block.text)
                else:
                    first = first or (" ".join(block.text.split()) if block.level == 1 else None)
                    builder.heading(block.level, block.text)
    return first
