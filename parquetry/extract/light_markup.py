"""Org and AsciiDoc: their headings, tables and code in the form of Markdown, without comments and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import MAX_FILLING, TextBuilder, fenced, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.media_types import ORG
from parquetry.model import Extraction, RawDocument, Scalar

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_MAX_LINE = 10_000
"""characters of a line in which links are looked for"""
_METADATA = frozenset({"author", "date", "email", "description", "keywords", "language", "subtitle", "revdate", "lang"})
_VALUE_CHARACTERS = 500
_MOST_PUT_IN = 100_000
"""characters by which values of attributes lengthen a text at most"""

_ORG_HEADING = re.compile(r"(\*{1,20})[ \t]+(\S.*)")
_ORG_STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED)(?:[ \t]+|$)")
_ORG_PRIORITY = re.compile(r"\[#[A-Z0-9]{1,2}\][ \t]*")
_ORG_TAGS = re.compile(r"[ \t]:[\w@#%:]{1,500}:$")
_ORG_SETTING = re.compile(r"#\+([A-Za-z_-]{1,40}):[ \t]*(.*)")
_ORG_BEGIN = re.compile(r"[ \t]*#\+begin_([a-z]{1,40})\b[ \t]*(\S{0,40})", re.IGNORECASE)
_ORG_DRAWER = re.compile(r"[ \t]*:(?:PROPERTIES|LOGBOOK|CLOCK):[ \t]*$", re.IGNORECASE)
_ORG_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
_ORG_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED|CLOCK):[ \t]*[<\[]")
_ORG_ROW = re.compile(r"[ \t]*\|")
_ORG_RULE = re.compile(r"[ \t]*\|-")
_ORG_LINK = re.compile(r"\[\[([^\[\]]{1,1000})\](?:\[([^\[\]]{1,1000})\])?\]")
_ORG_KEPT = frozenset({"caption", "name"})
_CODE = frozenset({"src", "example", "export"})

_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ADOC_ATTRIBUTE = re.compile(r":(!?[\w-]{1,60}!?):(?:[ \t]++(.*))?$")
_ADOC_REFERENCE = re.compile(r"(?<!\\)\{([\w-]{1,60})\}")
_ADOC_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|={4,}|\*{4,}|_{4,}+|--|```(?=\w{0,40}$))(\w*)$")
_ADOC_UNDERLINE = re.compile(r"(=+|-+|~+|\^+|\++)$")
_ADOC_LEVELS = "=-~^+"
_UNDERLINE_TOLERANCE = 2
"""characters between the length of a heading and of the line under it"""
_ADOC_TABLE = re.compile(r"[|,:!]={3,}[ \t]*$")
_ADOC_BLOCK = re.compile(r"\[([^\[\]]{0,500})\][ \t]*$")
_ADOC_TITLE = re.compile(r"\.([^\s.].*)")
_ADOC_CELL = re.compile(r"(?:^|(?<=[ \t]))(?:(\d{1,3})(?:\.\d{1,3})?\+|\.\d{1,3}\+)?[<^>.]{0,4}[aehlmsvd]?(?<!\\)\|")
_ADOC_ROWS = re.compile(r"\.\d{1,3}\+[<^>.]{0,4}[a-z]?\|")
"""cell over several rows"""
_ADOC_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::")
_ADOC_LINK = re.compile(r"(?:link:|xref:|(?=https?://))([^\s\[\]]{1,1000})\[([^\[\]]{0,1000})\]")
_LEAST_COLUMNS = re.compile(r"cols\s*=\s*\"?([^\"\]]{1,200})")


class LightMarkupExtractor(ListedExtractor):
    """Reads Org and AsciiDoc; files that a text includes are not read."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        """Extract one text.

        Raises:
            SkippedDocument: `no-text`.
        """
        text, encoding = decode(document.content)
        lines = _Lines(normalise(text, keep_layout=True))
        reading = _Reading(TextBuilder())
        (_read_org if media_type == ORG else _read_asciidoc)(lines, reading)
        reading.flush()
        extraction = reading.builder.build(
            title=reading.title or reading.first,
            metadata=reading.metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=list(replaced(document.content, text, encoding)),
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the file holds only white space, comments and settings")
        return extraction


@dataclass(slots=True)
class _Reading:
    """The text built so far, and the lines of the paragraph that is open."""

    builder: TextBuilder
    title: str | None = None
    first: str | None = None
    """first heading of level 1"""
    metadata: dict[str, Scalar] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    """names that the text gives to words of its own"""
    left: int = _MOST_PUT_IN
    """characters by which they may still lengthen the text"""

    def flush(self) -> None:
        """End the open paragraph."""
        if self.open:
            self.builder.text("\n".join(self.open))
            self.open.clear()

    def heading(self, level: int, title: str) -> None:
        """Add a heading."""
        self.flush()
        self.builder.heading(level, title)
        if level == 1 and self.first is None:
            self.first = title

    def setting(self, key: str, value: str) -> None:
        """Keep a setting that is metadata."""
        key = key.lower()
        if key == "title" and self.title is None:
            self.title = value.strip() or None
        elif key in _METADATA and value.strip():
            self.metadata.setdefault(key, value.strip()[:_VALUE_CHARACTERS])

    def filled_in(self, line: str) -> str:
        """Return a line with the values of the attributes that it refers to."""
        if not self.attributes or "{" not in line or len(line) > _MAX_LINE:
            return line
        filled = _ADOC_REFERENCE.sub(lambda found: self.attributes.get(found[1], found[0]), line)
        self.left -= max(0, len(filled) - len(line))
        return filled if self.left >= 0 else line


class _Lines:
    """The lines of a text, read once from the first to the last."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._next = 0
        self._last = {line.strip().lower(): number for number, line in enumerate(self._lines)}
        """last place of each line, so that a block without an end is not searched for one again and again"""

    def __iter__(self) -> Iterator[str]:
        while self._next < len(self._lines):
            self._next += 1
            yield self._lines[self._next - 1]

    def block(self, end: str) -> list[str] | None:
        """Read the lines up to one that is its end; return None, and read nothing, if there is none.

        Args:
            end: that line in lower case, without spaces around it.
        """
        if self._last.get(end, -1) < self._next:
            return None
        start = self._next
        while self._lines[self._next].strip().lower() != end:
            self._next += 1
        self._next += 1
        return self._lines[start : self._next - 1]

    def rows(self, pattern: re.Pattern[str]) -> list[str]:
        """Read the lines that follow as long as they match."""
        start = self._next
        while self._next < len(self._lines) and pattern.match(self._lines[self._next]):
            self._next += 1
        return self._lines[start : self._next]


# --- Org


def _read_org(lines: _Lines, reading: _Reading) -> None:
    hidden = 0
    """level of a heading that is commented out"""
    for line in lines:
        heading = _ORG_HEADING.match(line)
        if heading:
            level = len(heading[1])
            if hidden and level > hidden:
                continue
            title = _org_title(heading[2])
            hidden = level if title.split(" ")[0] == "COMMENT" else 0
            if not hidden:
                reading.heading(level, title)
            continue
        begin = _ORG_BEGIN.match(line)
        block = lines.block(f"#+end_{begin[1].lower()}") if begin else None
        if begin and block is not None:
            if not hidden:
                _add_org_block(begin[1].lower(), begin[2], block, reading)
        elif not (_is_org_drawer(line, lines) or hidden or _ORG_COMMENT.match(line) or _ORG_PLANNING.match(line)):
            _add_org_line(line, lines, reading)


def _is_org_drawer(line: str, lines: _Lines) -> bool:
    """Return True, and skip its lines, if a line opens properties of a heading."""
    return bool(_ORG_DRAWER.match(line)) and lines.block(":end:") is not None


def _add_org_line(line: str, lines: _Lines, reading: _Reading) -> None:
    if setting := _ORG_SETTING.match(line):
        reading.setting(setting[1], setting[2])
        if setting[1].lower() in _ORG_KEPT and setting[2]:
            reading.flush()
            reading.open.append(_linked(_ORG_LINK, setting[2]))
    elif _ORG_ROW.match(line):
        reading.flush()
        _add_org_table([line, *lines.rows(_ORG_ROW)], reading)
    elif line.strip():
        reading.open.append(_linked(_ORG_LINK, line))
    else:
        reading.flush()


def _org_title(title: str) -> str:
    """Return a heading without its state, priority and tags."""
    title = _ORG_STATE.sub("", title.rstrip()[:_MAX_LINE], count=1)
    title = _ORG_TAGS.sub("", _ORG_PRIORITY.sub("", title, count=1))
    return " ".join(_linked(_ORG_LINK, title).split())


def _add_org_block(kind: str, language: str, block: list[str], reading: _Reading) -> None:
    reading.flush()
    if kind == "comment":
        return
    if kind in _CODE:
        reading.builder.text(fenced("\n".join(block), language if kind == "src" else ""), keep_layout=True)
    else:
        reading.builder.text("\n".join(_linked(_ORG_LINK, line) for line in block))


def _add_org_table(lines: list[str], reading: _Reading) -> None:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not _ORG_RULE.match(line)
    ]
    rules = [number for number, line in enumerate(lines) if _ORG_RULE.match(line) and number]
    reading.builder.table(rows, header=bool(rules) and rules[0] < len(lines) - 1 and len(rows) > 1)


# --- AsciiDoc


def _read_asciidoc(lines: _Lines, reading: _Reading) -> None:
    attributes = ""
    for each in lines:
        line = each.rstrip()
        fence = _ADOC_FENCE.match(line)
        attributes, told = "", attributes
        if reading.open and _is_asciidoc_underline(line, reading.open):
            title = reading.open.pop()
            reading.heading(_ADOC_LEVELS.index(line[0]) + 1, " ".join(title.split()))
        elif _ADOC_TABLE.match(line) and (block := lines.block(line)) is not None:
            reading.flush()
            _add_asciidoc_table(line, [reading.filled_in(each) for each in block], told, reading)
        elif fence:
            reading.flush()
            _add_asciidoc_block(fence, told, lines, reading)
        elif line.startswith("//") or _ADOC_CONDITION.match(line):
            attributes = told
        elif block_attributes := _ADOC_BLOCK.match(line):
            reading.flush()
            attributes = block_attributes[1]
        elif attribute := _ADOC_ATTRIBUTE.match(line):
            value = reading.filled_in((attribute[2] or "").strip()[:_VALUE_CHARACTERS])
            reading.setting(attribute[1], value)
            reading.attributes[attribute[1]] = value[:_VALUE_CHARACTERS]
        elif heading := None if reading.open else _ADOC_HEADING.match(line):
            title = _linked(_ADOC_LINK, reading.filled_in(heading[2]))
            reading.heading(len(heading[1]), " ".join(title.split()))
        elif caption := None if reading.open else _ADOC_TITLE.match(line):
            reading.builder.text(reading.filled_in(caption[1]))
            attributes = told
        elif line and line != "+":
            reading.open.append(_linked(_ADOC_LINK, reading.filled_in(line)))
        else:
            reading.flush()


def _is_asciidoc_underline(line: str, open_lines: list[str]) -> bool:
    """Return True for the line under a heading of two lines."""
    near = abs(len(line) - len(open_lines[-1])) <= _UNDERLINE_TOLERANCE
    return len(open_lines) == 1 and near and bool(_ADOC_UNDERLINE.match(line)) and any(map(str.isalnum, open_lines[0]))


def _add_asciidoc_block(fence: re.Match[str], attributes: str, lines: _Lines, reading: _Reading) -> None:
    """Add what stands between two lines of marks; of an example or a quotation, its lines are read as others are."""
    mark = fence[1]
    kind, _, rest = (each.strip() for each in attributes.partition(","))
    if mark[0] == "/" or kind == "comment":
        lines.block(mark)
    elif (mark[0] in "-.+`" and mark != "--") or kind in {"source", "listing", "literal"}:
        code = lines.block(mark)
        language = fence[2] or (rest.partition(",")[0].strip() if kind == "source" else "")
        if code is not None:
            reading.builder.text(fenced("\n".join(code), re.sub(r"\W", "", language)), keep_layout=True)


def _add_asciidoc_table(mark: str, lines: list[str], attributes: str, reading: _Reading) -> None:
    """Add a table if its cells are certain, else its lines; a cell over very many columns is no cell."""
    cells: list[list[str]] = []
    """lines of each cell"""
    per_line: list[int] = []
    is_certain = not any(map(_ADOC_ROWS.search, lines))
    for line in lines if mark[0] == "|" else []:
        found = list(_ADOC_CELL.finditer(line[:_MAX_LINE]))
        if not found or found[0].start() > 0:
            if cells and line.strip():
                cells[-1].append(line.strip())
            continue
        ends = [each.start() for each in found[1:]] + [len(line)]
        texts = [line[each.end() : end].strip() for each, end in zip(found, ends, strict=True)]
        widths = [int(each[1] or 1) for each in found]
        is_certain &= max(widths) <= 1 + MAX_FILLING
        per_line.append(sum(widths))
        for width, text in zip(widths, texts, strict=True):
            cells.append([_linked(_ADOC_LINK, text)])
            cells += [[""] for _ in range(min(width - 1, MAX_FILLING))]
    columns = _columns(attributes) or (per_line[0] if per_line else 0)
    if not cells or len(cells) % columns or not is_certain:
        reading.builder.text("\n".join(line for line in lines if line.strip()))
        return
    rows = [[" ".join(cell) for cell in cells[at : at + columns]] for at in range(0, len(cells), columns)]
    head = "header" in attributes or (len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip())
    reading.builder.table(rows, header=head and len(rows) > 1)


def _columns(attributes: str) -> int:
    """Return the number of columns that the attributes of a table tell; 0 if they do not."""
    told = _LEAST_COLUMNS.search(attributes)
    if not told:
        return 0
    columns = 0
    for each in told[1].split(","):
        times, star, _ = each.strip().partition("*")
        columns += int(times) if star and times.isdigit() and len(times) < 4 else 1
    return columns


def _linked(pattern: re.Pattern[str], line: str) -> str:
    """Replace links by their text, and by their target where they have none."""
    if len(line) > _MAX_LINE or "[" not in line:
        return line
    return pattern.sub(lambda link: link[2] or link[1], line)
