"""Markdown: the text unchanged, with its headings and front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import MAX_TITLE_CHARACTERS, TextBuilder, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.front_matter import split_front_matter
from parquetry.extract.scanning import Marks
from parquetry.model import Extraction, Heading, RawDocument

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

    from parquetry.settings.extraction import ExtractionSettings

_COMMENT = Marks(re.compile(r"<!--()"), {"": re.compile("-->")})
_TAG = re.compile(r"</?\w[^<>]*>")
_MARKUP = re.compile(r"[\\`*_\[\]<>&!]")
_MAX_QUOTES = 3
"""depth of nested quotations that are distinguished; a parser rereads the content of one for each enclosing one"""
_CONTAINERS = re.compile(r"^(?:[ \t]*+(?:>|[-+*](?=[ \t])|\d{1,9}+[.)](?=[ \t])))++", re.MULTILINE)
"""marks that open quotations and lists at the start of a line"""
_MAX_DEFINITION = 1000
"""lines of a link definition"""


class MarkdownExtractor(ListedExtractor):
    """Reads Markdown in the CommonMark dialect, with tables."""

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
            extractor=self.id,
            warnings=warnings,
        )
        if not extraction.text and not front:
            raise SkippedDocument("no-text", "the file holds only white space")
        return extraction


def add_markdown(builder: TextBuilder, text: str) -> str | None:
    """Append Markdown unchanged and mark its headings.

    Args:
        builder: receives text and headings.
        text: Markdown.

    Returns:
        The first heading of level 1, the outermost, if there is one.
    """
    text = normalise(text).strip("\n")
    builder.leave_tables_uncounted()
    begin = builder.text(text)
    if begin is None:
        return None
    # The builder strips leading spaces of the first line, which may mark it as code.
    start = begin - (len(text) - len(text.lstrip()))
    first: str | None = None
    for heading in headings_of(text):
        # A heading may begin with spaces that are none to Markdown, such as one that does not break.
        builder.mark_heading(max(begin, start + heading.start), heading.level, heading.title)
        if heading.level == 1 and first is None:
            first = heading.title
    return first


def headings_of(text: str) -> Iterator[Heading]:
    """Yield the headings of Markdown in order, without those inside quotations and lists."""
    lines = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    headings = _Headings()
    _parser().block.parse(_CONTAINERS.sub(_without_deep_quotes, text), _parser(), {}, headings)
    for line, level, content in headings.found:
        title = _plain(content)
        if title:
            yield Heading(lines[line], level, title)


class _Headings(list["Token"]):
    """Receives the parser's tokens and keeps only headings: all tokens take 300 times the memory of the text."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, str]] = []
        """0-based line, level and content of each heading"""
        self._heading: list[Token] = []

    def append(self, token: Token) -> None:
        if self._heading or (token.type == "heading_open" and token.level == 0):
            # Headings in quotations and lists are quoted and do not head sections.
            self._heading.append(token)
        if token.type == "heading_close" and self._heading:
            opening, inline, _ = self._heading
            self.found.append((opening.map[0] if opening.map else 0, int(opening.tag[1]), inline.content))
            self._heading = []


def _without_deep_quotes(opening: re.Match[str]) -> str:
    """Remove quotation marks beyond the maximum depth from a line's opening; quotations contain no counted headings."""
    pieces = opening[0].split(">", _MAX_QUOTES)
    *quotes, last = pieces[-1].split(">")
    pieces[-1] = "".join([*(quote.rstrip(" \t") for quote in quotes), last])
    return ">".join(pieces)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.block.ruler.at("reference", _reference)
    return parser


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a link definition of limited length: for each of its lines the parser copies all lines before it."""
    from markdown_it.rules_block import reference

    last = state.lineMax
    state.lineMax = min(last, start + _MAX_DEFINITION)
    try:
        return reference(state, start, end, silent)
    finally:
        state.lineMax = last


def _plain(content: str) -> str:
    """Return the text of a heading without markup."""
    content = content[: 2 * MAX_TITLE_CHARACTERS]
    if not _MARKUP.search(content):
        return " ".join(content.split())
    parsed = _parser().parseInline(content)
    pieces = []
    for child in parsed[0].children or []:
        if child.type in ("text", "code_inline", "image"):
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
    return " ".join(_TAG.sub("", _COMMENT.replace("".join(pieces), lambda _: "")).split())
