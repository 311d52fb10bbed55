"""Markdown: the text as it is, with its headings and front matter."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from knowledge.errors import SkippedDocument
from knowledge.extract.builder import MAX_TITLE_CHARACTERS, TextBuilder, normalise
from knowledge.extract.encoding import decode, replaced
from knowledge.extract.front_matter import split_front_matter
from knowledge.extract.scanning import Marks
from knowledge.model import Extraction, RawDocument
from knowledge.settings import ExtractionSettings

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_COMMENT = Marks(re.compile(r"<!--()"), {"": re.compile("-->")})
_TAG = re.compile(r"</?\w[^<>]*>")


class MarkdownExtractor:
    """Reads Markdown in the CommonMark dialect, with tables."""

    name = "markdown"
    version = 1
    media_types = frozenset({"text/markdown"})
    settings_used: frozenset[str] = frozenset()

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        warnings = list(replaced(document.content, text, encoding))
        text, front, problem = split_front_matter(normalise(text).lstrip("\n"))
        warnings += [problem] if problem else []
        builder = TextBuilder()
        first = add_markdown(builder, text)
        title = front.pop("title", None)
        extraction = builder.build(
            title=str(title) if title else first,
            metadata=front,
            media_type=media_type,
            extractor=f"{self.name}/{self.version}",
            warnings=warnings,
        )
        if not extraction.text and not front:
            raise SkippedDocument("no-text", "the file holds only white space")
        return extraction


def add_markdown(builder: TextBuilder, text: str) -> str | None:
    """Append Markdown as it is, and mark its headings.

    Args:
        builder: receives text and headings.
        text: Markdown.

    Returns:
        The first heading of the outermost level 1, if there is one.
    """
    text = normalise(text).strip("\n")
    start = builder.text(text)
    if start is None:
        return None
    # The builder has taken off the spaces of the first line, which may be what makes it code.
    start -= len(text) - len(text.lstrip())
    lines = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    first: str | None = None
    tokens = _parser().parse(text)
    for token, inline in pairwise(tokens):
        # Headings within quotations and lists are quoted, and head nothing.
        if token.type != "heading_open" or token.level > 0 or token.map is None:
            continue
        title = _plain(inline)
        if not title:
            continue
        depth = int(token.tag[1])
        builder.mark_heading(start + lines[token.map[0]], depth, title)
        if depth == 1 and first is None:
            first = title
    return first


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Inline markup is parsed for headings only.
    return MarkdownIt("commonmark").disable("inline")


@lru_cache(maxsize=1)
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _plain(inline: Token) -> str:
    """The text of a heading without its markup."""
    parsed = _inline_parser().parseInline(inline.content[: 2 * MAX_TITLE_CHARACTERS])
    pieces = []
    for child in parsed[0].children or []:
        if child.type in ("text", "code_inline", "image"):
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
    return " ".join(_TAG.sub("", _COMMENT.replace("".join(pieces), lambda _: "")).split())
