"""The readable side of a document: TOML front matter between `+++` lines, then Markdown."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

EDITION = datetime(2031, 5, 2, 8, 0, tzinfo=UTC)
"""Written wherever a format wants to know when it was made, so that building twice gives the same bytes."""

PAGE_BREAK = "\n===\n"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading."""

    level: int
    """1 for the outermost"""
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `lines` has more than one where the source breaks a short text by hand."""

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    texts: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first row holds the column names."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What the speaker says and the audience does not read: a block quote."""

    text: str


Block = Heading | Paragraph | Items | Table | Note


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A document before it is given a format."""

    properties: dict[str, Any]
    body: str
    """everything after the front matter, as written"""

    @property
    def title(self) -> str:
        return str(self.properties["title"])

    @property
    def author(self) -> str:
        return str(self.properties.get("author", "Hollin & Reed"))

    def pages(self) -> list[list[Block]]:
        """Blocks by page; a line of `===` starts a new page."""
        return [blocks(page) for page in self.body.split(PAGE_BREAK)]

    def sections(self) -> list[tuple[str, list[Block]]]:
        """Blocks by level-1 heading (a slide, a chapter), without that heading itself."""
        found: list[tuple[str, list[Block]]] = []
        for block in blocks(self.body):
            if isinstance(block, Heading) and block.level == 1:
                found.append((block.text, []))
            else:
                found[-1][1].append(block)
        return found


def read_manuscript(text: str) -> Manuscript:
    """Split a source text into its properties and its body."""
    _, front, body = text.split("+++\n", 2)
    return Manuscript(tomllib.loads(front), body.lstrip("\n"))


def blocks(markdown: str) -> list[Block]:
    """The blocks of a Markdown text: headings, paragraphs, lists, tables and quotes."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    found: list[Block] = []
    position = 0
    while position < len(tokens):
        end = _closing(tokens, position)
        found.append(_block(tokens[position : end + 1]))
        position = end + 1
    return found


def _closing(tokens: list[Token], start: int) -> int:
    depth = 0
    for position in range(start, len(tokens)):
        depth += tokens[position].nesting
        if depth == 0:
            return position
    raise ValueError(f"block at line {tokens[start].map} never ends")


def _block(tokens: list[Token]) -> Block:
    inline = [token.content for token in tokens if token.type == "inline"]
    match tokens[0].type:
        case "heading_open":
            return Heading(int(tokens[0].tag[1:]), inline[0])
        case "paragraph_open":
            return Paragraph(tuple(inline[0].split("\n")))
        case "bullet_list_open" | "ordered_list_open":
            texts = tuple(" ".join(text.split("\n")) for text in inline)
            return Items(texts, ordered=tokens[0].type == "ordered_list_open")
        case "blockquote_open":
            return Note(" ".join(" ".join(inline).split("\n")))
        case "table_open":
            width = sum(token.type == "th_open" for token in tokens)
            return Table(tuple(tuple(inline[at : at + width]) for at in range(0, len(inline), width)))
        case kind:
            raise ValueError(f"the handbook's writers know no {kind!r} (line {tokens[0].map})")
