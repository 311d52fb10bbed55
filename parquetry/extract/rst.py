"""reStructuredText: the text unchanged, with its headings."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.model import Extraction, RawDocument, Scalar

if TYPE_CHECKING:
    from docutils import nodes

    from parquetry.settings.extraction import ExtractionSettings

_MAX_PARSED = 2 * 1024 * 1024
"""characters; docutils takes seconds per megabyte, and a longer text is kept without its headings"""
_BLOCK = re.compile(r"^[ ]*+(?:[-+*•‣⁃|:>]|\.\.[ \n]|__ |\(?(?:[a-zA-Z]|[0-9ivxlcdmIVXLCDM]++|#)[.)] )", re.MULTILINE)
_MAX_WORK = 1_000_000_000
"""lines that begin lists, fields or directives, times all lines: docutils copies the remaining lines for each block.
10 ns each; a change log of 1 MB has half of this."""
_BLOCK_WORK = 30_000
"""additional work per block, in lines"""
_MAX_LINE = 2000
"""characters of a line that are parsed"""
_MAX_INLINE = 2000
"""characters of a paragraph or title up to which inline markup is read"""


class RstExtractor(ListedExtractor):
    """Reads reStructuredText; directives for included files and raw output are disabled."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        warnings = list(replaced(document.content, text, encoding))
        text = normalise(text.expandtabs(8)).strip()
        builder = TextBuilder("text")
        if builder.text(text) is None:
            raise SkippedDocument("no-text", "the file holds only white space")
        title: str | None = None
        metadata: dict[str, Scalar] = {}
        if len(text) > _MAX_PARSED:
            warnings.append(f"the text is longer than {_MAX_PARSED} characters: its headings were not read")
        elif len(_BLOCK.findall(text)) * (_BLOCK_WORK + text.count("\n")) > _MAX_WORK:
            warnings.append("the text has too many lists and directives: its headings were not read")
        else:
            try:
                tree = parse_rst(text)
                title, metadata = _mark_headings(builder, text, tree), _bibliography(tree)
            except RecursionError:
                warnings.append("too-deep: the text is nested too deep: its headings were not read")
        return builder.build(
            title=title,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


class _Inlines:
    """Parses inline markup only in short text such as titles and fields, because docutils takes quadratic time."""

    def __init__(self) -> None:
        from docutils.parsers.rst.states import Inliner

        self._inliner = Inliner()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inliner, name)

    def parse(self, text: str, lineno: int, memo: Any, parent: Any) -> tuple[list[nodes.Node], list[Any]]:
        from docutils import nodes

        if len(text) > _MAX_INLINE:
            return [nodes.Text(text)], []
        found: tuple[list[nodes.Node], list[Any]] = self._inliner.parse(text, lineno, memo, parent)
        return found


def parse_rst(text: str) -> nodes.document:
    """Parse a text without reading any other file."""
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.utils import new_document

    parser = Parser(inliner=_Inlines())  # type: ignore[arg-type]
    settings = get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.line_length_limit = _MAX_PARSED
    settings.syntax_highlight = "none"
    # Only parsed, not transformed: substitutions are not expanded.
    tree = new_document("text", settings)
    parser.parse("\n".join(line[:_MAX_LINE] for line in _without_grids(text.split("\n"))), tree)
    return tree


def _without_grids(lines: Iterable[str]) -> Iterator[str]:
    """Blank the lines of grid tables, which have no sections and take docutils quadratic time."""
    within = False
    above = ""
    for line in lines:
        bare = line.strip()
        is_top = not above and bare.startswith("+-") and bare.endswith("-+") and not bare.strip("+-")
        within = bare.startswith(("+", "|")) and (within or is_top)
        yield "" if within else line
        above = bare


def _mark_headings(builder: TextBuilder, text: str, tree: nodes.document) -> str | None:
    """Mark every section title; return the first one."""
    from docutils import nodes

    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    underlined: dict[str, list[int]] = defaultdict(list)
    for number, (line, below_it) in enumerate(pairwise(lines)):
        if _is_adornment(below_it):
            underlined[line.strip()].append(number)
    below = 0
    first: str | None = None
    for title in tree.findall(nodes.title):
        section = title.parent
        if not isinstance(section, nodes.section):
            continue
        name = " ".join(title.astext().split())
        # docutils keeps the text of a title, but its position only sometimes.
        places = underlined[(title.rawsource or name).strip()]
        following = bisect_left(places, below)
        if following == len(places):
            continue
        place = places[following]
        below = place + 1
        overlined = place > 0 and _is_adornment(lines[place - 1]) and lines[place - 1] == lines[place + 1]
        builder.mark_heading(offsets[place - overlined], _depth(section), name)
        first = first or name
    return first


def _is_adornment(line: str) -> bool:
    line = line.rstrip()
    return bool(line) and not line[0].isalnum() and line == line[0] * len(line)


def _depth(section: nodes.section) -> int:
    from docutils import nodes

    depth = 0
    node: nodes.Node = section
    while isinstance(node, nodes.section):
        depth += 1
        node = node.parent
    return depth


def _bibliography(tree: nodes.document) -> dict[str, Scalar]:
    """Return the fields at the top of the document, such as `:author:` and `:date:`."""
    from docutils import nodes

    fields = next((child for child in tree.findall(nodes.field_list) if _is_at_top(child)), None)
    metadata: dict[str, Scalar] = {}
    for field in fields or []:
        if isinstance(field, nodes.field):
            name, body = field.children[0].astext(), " ".join(field.children[1].astext().split())
            if body and len(name) <= 40:
                metadata[name.strip().lower()] = body[:500]
    return metadata


def _is_at_top(fields: nodes.Node) -> bool:
    from docutils import nodes

    parent = fields.parent
    if isinstance(parent, nodes.section) and isinstance(parent.parent, nodes.document):
        return parent.index(fields) == 1 and parent.parent.index(parent) == 0
    return isinstance(parent, nodes.document) and parent.index(fields) == 0
