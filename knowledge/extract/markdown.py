"""Markdown: the text as it is, with its headings and front matter."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from knowledge.errors import SkippedDocument
from knowledge.extract.builder import MAX_TITLE_CHARACTERS, TextBuilder, normalise
from knowledge.extract.encoding import decode, replaced
from knowledge.extract.scanning import Marks
from knowledge.model import Extraction, RawDocument, Scalar
from knowledge.settings import ExtractionSettings

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_FRONT_MATTER = 64 * 1024
"""Characters. What is longer is not front matter, and YAML takes quadratic time over hostile input."""
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


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar], str | None]:
    """Take YAML (`---`) or TOML (`+++`) front matter off a text.

    Returns:
        The text without it, its values (lists as comma-separated text), and a warning if it could not be read; it then
        stays in the text.
    """
    found = _FRONT_MATTER.match(text)
    if found is None or len(found[2]) > _MAX_FRONT_MATTER:
        return text, {}, None
    try:
        values = _read_toml(found[2]) if found[1] == "+++" else _read_yaml(found[2])
    except ValueError as error:
        return text, {}, f"front matter could not be read: {error}"
    if values is None:
        # A rule, a paragraph and a rule.
        return text, {}, None
    return text[found.end() :], _scalars(values), None


def _read_toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _read_yaml(text: str) -> dict[str, Any] | None:
    import yaml

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    return values if isinstance(values, dict) else None


def _scalars(values: dict[str, Any]) -> dict[str, Scalar]:
    kept: dict[str, Scalar] = {}
    for key, value in values.items():
        if isinstance(value, str | int | float | bool):
            kept[str(key)] = value
        elif isinstance(value, date):
            kept[str(key)] = value.isoformat()
        elif isinstance(value, list) and all(isinstance(item, str | int | float | date) for item in value):
            kept[str(key)] = ", ".join(map(str, value))
    return kept


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
