"""Writes a parsed page as Markdown blocks."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from parquetry.extract.builder import TextBuilder, fenced, table_row
from parquetry.extract.html.nodes import BLOCKS, RunningText, is_unseen, raw_text, running_text, walk
from parquetry.extract.html.shape import Blocks
from parquetry.extract.html.tables import is_layout_table, read_table

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_LANGUAGE_CLASS = re.compile(r"\b(?:language|lang|highlight-source|brush)[-:]\s*([a-zA-Z][\w+#]*)")
_PERMALINK = re.compile(r"[¶#]\s+")
_PERMALINKS = ("¶", "#", "§", "🔗", "[edit]", "[edit source]")
_LIST = re.compile(r"\s*(?:-|\d+\.) ")
_MAX_MARKER_DEPTH = 12
"""depth of lists beyond which items are not indented further"""
_MAX_FRAMES = 64
"""depth of nested lists, list items and quotations; deeper ones become lines of the enclosing one"""
_MAX_TABLES = 8
"""depth of nested tables; a table that holds more is a layout table"""


@dataclass(slots=True)
class _Frame:
    """An open element whose blocks belong together."""

    kind: Literal["list", "item", "quote"]
    node: int
    """id of the element"""
    marker: str = ""
    """text before the first line of an item; the other lines are indented by its length"""
    numbered: int | None = None
    """next number of an ordered list; None for other elements"""
    blocks: list[str] = field(default_factory=list)


class BlockWriter:
    """Writes the visible content of an element into a builder, block by block.

    Args:
        builder: receives headings, paragraphs, lists, tables and code.
        blocks: nesting of blocks and tables in the page.
        dropped: ids (`mem_id`) of the elements to leave out.
    """

    def __init__(self, builder: TextBuilder, blocks: Blocks, dropped: Collection[int] = ()) -> None:
        self._builder = builder
        self._blocks = blocks
        self._dropped = dropped
        self._frames: list[_Frame] = []
        self._line = RunningText()

    def write(self, root: LexborNode) -> None:
        if self._enter(root):
            walk(root, self._enter, self._leave)
            self._leave(root)
        self._flush()

    def _enter(self, node: LexborNode) -> bool:
        if node.is_text_node:
            return self._line.enter(node)
        tag = node.tag or ""
        if tag not in BLOCKS:
            return node.mem_id not in self._dropped and self._line.enter(node)
        if node.mem_id in self._dropped or is_unseen(node):
            return False
        self._flush()
        if tag in HEADINGS:
            self._heading(int(tag[1]), node)
            return False
        if tag == "pre":
            self._code(node)
            return False
        if tag == "table":
            return self._table(node)
        self._open(tag, node)
        return True

    def _leave(self, node: LexborNode) -> None:
        if node.tag not in BLOCKS:
            self._line.leave(node)
            return
        self._flush()
        if self._frames and self._frames[-1].node == node.mem_id:
            self._close(self._frames.pop())

    def _open(self, tag: str, node: LexborNode) -> None:
        if len(self._frames) >= _MAX_FRAMES:
            return
        if tag in _LISTS:
            # A list of cards, each with a heading or a table, is page layout.
            if node.mem_id not in self._blocks.with_blocks:
                numbered = _start_number(node) if tag == "ol" else None
                self._frames.append(_Frame("list", node.mem_id, numbered=numbered))
        elif tag == "blockquote":
            self._frames.append(_Frame("quote", node.mem_id))
        elif tag in ("li", "dt", "dd") and self._frames and self._frames[-1].kind == "list":
            self._frames.append(_Frame("item", node.mem_id, marker=self._marker(tag, self._frames[-1])))

    def _marker(self, tag: str, listing: _Frame) -> str:
        if tag == "dd":
            return "  "
        if listing.numbered is None or tag == "dt":
            return "- "
        listing.numbered += 1
        return f"{listing.numbered - 1}. "

    def _close(self, frame: _Frame) -> None:
        blocks = [block for block in frame.blocks if block.strip()]
        if not blocks:
            return
        if frame.kind == "list":
            self._emit("\n".join(blocks))
        elif frame.kind == "quote":
            lines = "\n\n".join(blocks).split("\n")
            self._emit("\n".join(f"> {line}" if line else ">" for line in lines))
        else:
            deep = sum(1 for outer in self._frames if outer.kind == "item") >= _MAX_MARKER_DEPTH
            indent = "" if deep else " " * len(frame.marker)
            text = blocks[0]
            for block in blocks[1:]:
                text += ("\n" if _LIST.match(block) else "\n\n") + block
            self._emit(frame.marker + text.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n"))

    def _heading(self, level: int, node: LexborNode) -> None:
        title = _without_permalinks(running_text(node))
        if self._frames:
            self._emit(title)
        else:
            self._builder.heading(level, title)

    def _code(self, node: LexborNode) -> None:
        code = raw_text(node).strip("\n").expandtabs(4)
        if not code.strip():
            return
        inner = node.css_first("code")
        outer = node.parent
        classes = " ".join(
            one.attributes.get("class") or "" for one in (node, inner, outer) if one is not None and one.attributes
        )
        language = _LANGUAGE_CLASS.search(classes)
        self._emit(fenced(code, language[1] if language else ""), keep_layout=True)

    def _table(self, node: LexborNode) -> bool:
        """Write a table; return True if its cells are to be read as blocks instead."""
        if self._blocks.tables_below(node) > _MAX_TABLES or is_layout_table(node):
            return True
        for caption in node.css("caption"):
            self._emit(running_text(caption))
        rows, header = read_table(node)
        if max(map(len, rows), default=0) < 2:
            for row in rows:
                self._emit("".join(row))
        elif rows and not self._frames:
            self._builder.table(rows, header=header)
        elif rows:
            self._emit("\n".join(table_row(row) for row in rows))
        return False

    def _flush(self) -> None:
        text = self._line.take()
        if text:
            self._emit(text)

    def _emit(self, block: str, *, keep_layout: bool = False) -> None:
        if self._frames:
            self._frames[-1].blocks.append(block)
        else:
            self._builder.text(block, keep_layout=keep_layout)


def _without_permalinks(title: str) -> str:
    """Remove permalink signs before and after a heading."""
    title = _PERMALINK.sub("", title, count=1) if title.startswith(("¶", "#")) else title
    end = len(title)
    while sign := next((sign for sign in _PERMALINKS if title[max(0, end - len(sign)) : end].lower() == sign), None):
        end -= len(sign)
    return title[:end].rstrip()


def _start_number(node: LexborNode) -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1
