"""Builds a normalised text piece by piece, with exact positions throughout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from parquetry.extract import allowance
from parquetry.extract.quality import COUNTED, PageFacts, quality_of
from parquetry.extract.scanning import longest_run
from parquetry.model import Extraction, Heading, Part, PartKind, Scalar, TextFormat
from parquetry.plural import counted

TABLE_BLOCK_CHARACTERS = 900
"""Size in characters above which a table is split into blocks, each with the header row, so that every chunk has the
column names. Below the size of every chunking preset, so that a chunk holds at least one whole block."""
MAX_TITLE_CHARACTERS = 5000
"""characters of the title of a heading, a part or a document; longer titles are cut, because every chunk carries
them"""
MOST_NAMES = 16
"""maximum characters of column names in a table block per character of its rows"""
MAX_FILLING = 8
"""maximum cells of a padded table per existing cell; a table or a span that needs more is left as it is"""
FREE_FILLING = 10_000
"""cells up to which any table may be padded"""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\ufeff\ufffe\uffff]")
_REPLACED = re.compile(r"[\ud800-\udfff\ufb00-\ufb06]")
_CHANGED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u2028\u2029\ud800-\udfff\ufb00-\ufb06\ufeff\ufffe\uffff]")
"""every character that is removed or replaced"""
_SPACES = (" ", "\t", "\u00a0")
_TRAILING_SPACE = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]++(?=\n|$)")
_MANY_MARKS = re.compile(r"[^\x00-\x7f\w\s]{32,}")
_MOST_MARKS = 500
_BLANK_LINES = re.compile(r"\n{3,}")
_LIGATURES = {
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st",
}  # fmt: skip


def normalise(text: str, *, keep_layout: bool = False) -> str:
    """Normalise text to the form in which all text is stored.

    Unicode NFC; typographic ligatures are spelled out; every line break becomes a line feed; control characters other
    than tab and line feed are removed; lone surrogates are replaced; lines have no trailing spaces; at most one blank
    line in a row.

    Args:
        text: any text.
        keep_layout: keep trailing spaces and runs of blank lines (for code).
    """
    if text.isascii() and text.isprintable():
        # Most cells of tables, of which a file may have millions.
        return text if keep_layout else text.rstrip(" ")
    if _CHANGED.search(text):
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n").replace("\x0c", "\n")
        text = text.replace("\x85", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n")
        text = _CONTROL.sub("", text)
        text = _REPLACED.sub(lambda match: _LIGATURES.get(match[0], "\ufffd"), text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _MANY_MARKS.sub(_in_canonical_order, text))
    if keep_layout:
        return text
    if text.endswith(_SPACES) or any(f"{space}\n" in text for space in _SPACES):
        # The pattern stops at every space.
        text = _TRAILING_SPACE.sub("", text)
    return _BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text


def _in_canonical_order(run: re.Match[str]) -> str:
    """Sort combining marks into canonical order, which `unicodedata.normalize` does in quadratic time."""
    characters = "".join(unicodedata.normalize("NFD", character) for character in run[0])
    return "".join(
        character
        for marks, group in groupby(characters, key=lambda character: unicodedata.combining(character) > 0)
        for character in (sorted(group, key=unicodedata.combining) if marks else group)
    )


def has_many_marks(text: str) -> bool:
    """Return True if a run of combining marks is so long that libraries which normalise text take too long."""
    runs = () if text.isascii() else (run[0] for run in _MANY_MARKS.finditer(text))
    return any(sum(map(bool, map(unicodedata.combining, run))) > _MOST_MARKS for run in runs if len(run) > _MOST_MARKS)


def one_line(text: str) -> str:
    """Normalise text and collapse each run of white space to a single space."""
    return " ".join(normalise(text).split())


def fenced(code: str, language: str) -> str:
    """Enclose code in fences longer than any similar run within the code."""
    fence = "`" * max(3, 1 + longest_run(code, "`"))
    return f"{fence}{language}\n{code}\n{fence}"


def filled_up(rows: Sequence[list[str]]) -> list[list[str]]:
    """Pad rows to equal length, unless nearly all cells of the padded table would be empty."""
    width = max(map(len, rows), default=0)
    if width * len(rows) > FREE_FILLING + MAX_FILLING * sum(map(len, rows)):
        return list(rows)
    return [[*row, *[""] * (width - len(row))] for row in rows]


def table_row(cells: Iterable[str]) -> str:
    """Format one row of a Markdown table, with line breaks and pipes in cells escaped."""
    shown = (" ".join(cell.split()).replace("|", "\\|") if cell else "" for cell in cells)
    return "| " + " | ".join(shown) + " |"


def table_blocks(rows: Sequence[Sequence[str]], *, header: bool) -> Iterator[str]:
    """Yield a table as Markdown tables that each repeat the header row.

    Args:
        rows: at least one, as cells.
        header: True if the first row holds the column names; otherwise the columns stay unnamed.
    """
    width = max(map(len, rows))
    names, body = (rows[0], rows[1:]) if header else ([""] * width, rows)
    head = [table_row(names), "|" + " --- |" * len(names)]
    most = max(TABLE_BLOCK_CHARACTERS, sum(map(len, head)) // MOST_NAMES)
    block: list[str] = []
    size = 0
    for row in body:
        line = table_row(row)
        if block and size + len(line) > most:
            yield "\n".join([*head, *block])
            block, size = [], 0
        block.append(line)
        size += len(line)
    if block or header:
        yield "\n".join([*head, *block])


class TextBuilder:
    """Collects the text, parts and headings of one document.

    Pieces are normalised as they are added and separated by a blank line. Open a part before adding to it; text added
    outside any part belongs to one part of kind `document`.
    """

    def __init__(self, default_format: TextFormat = "markdown", language: str | None = None) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._parts: list[Part] = []
        self._headings: list[Heading] = []
        self._open: tuple[int, PartKind, int, str | None, TextFormat] = (
            0,
            "document",
            1,
            None,
            default_format,
        )
        self._language = language
        self._allowance = allowance.current()
        self._cut = 0
        self._joins = False
        """True if the next piece belongs in a new part but the limit on parts is reached"""
        self._joined = 0
        self._pages: int | None = None
        """highest number of a page or slide"""
        self._tables: int | None = 0 if default_format in ("markdown", "table") else None

    @property
    def length(self) -> int:
        """Return the number of code points added so far."""
        return self._length

    def part(self, kind: PartKind, number: int, name: str | None = None, format: TextFormat = "markdown") -> None:
        """Start a page, sheet, slide or chapter, up to the next one; over the limit, the open part continues."""
        if kind in COUNTED:
            self._pages = max(number, self._pages or 0)
        open_parts = len(self._parts) + (0 <= self._open[0] < self._length)
        self._joins = self._allowance is not None and 0 < open_parts >= self._allowance.parts(self._length)
        if self._joins:
            return
        self._close_part()
        self._open = (-1, kind, number, name, format)

    def heading(self, level: int, title: str) -> None:
        """Add a Markdown heading line."""
        title = one_line(title)
        if title and (start := self._add(f"{'#' * min(level, 6)} {title}")) is not None:
            self.mark_heading(start, level, title)

    def text(self, text: str, *, keep_layout: bool = False) -> int | None:
        """Add a block of text; return its start offset, or None if none of the text is kept."""
        text = normalise(text, keep_layout=keep_layout)
        text = text.strip("\n") if keep_layout else text.strip()
        return self._add(text) if text.strip() else None

    def mark_heading(self, start: int, level: int, title: str) -> None:
        """Record a heading in text already added; call in text order."""
        self._headings.append(Heading(start, level, title[:MAX_TITLE_CHARACTERS].rstrip()))

    def table(self, rows: Sequence[Sequence[str]], *, header: bool = True) -> None:
        """Add a Markdown table, in blocks that each repeat the header row.

        Args:
            rows: cells as text; short rows are padded, unless nearly all cells would be empty.
            header: True if the first row holds the column names; otherwise the columns stay unnamed.
        """
        rows = filled_up([[normalise(cell) for cell in row] for row in rows if any(cell.strip() for cell in row)])
        if not rows:
            return
        if self._tables is not None:
            self._tables += 1
        for block in table_blocks(rows, header=header):
            self._add(block)

    def leave_tables_uncounted(self) -> None:
        """Record that the number of tables is unknown, because text that may hold some is added as it is."""
        self._tables = None

    def build(
        self,
        *,
        title: str | None,
        metadata: Mapping[str, Scalar],
        media_type: str,
        extractor: str,
        warnings: Sequence[str] = (),
        pages: PageFacts | None = None,
    ) -> Extraction:
        """Return the finished extraction."""
        self._close_part()
        title = one_line(title)[:MAX_TITLE_CHARACTERS].rstrip() if title else None
        if self._cut and self._allowance is not None:
            total = self._length + self._cut
            warnings = [*warnings, f"cut: {self._cut} of {total} characters, {self._allowance.why}"]
        if self._joined and self._allowance is not None:
            joined = counted(self._joined, "part is", "parts are")
            warnings = [*warnings, f"{joined} joined to the one before, {self._allowance.why_joined}"]
        text = "".join(self._pieces)
        facts = pages or PageFacts()
        if self._joined:
            # Pages that were joined to others cannot be told from pages without text.
            facts = replace(facts, all_seen=False)
        return Extraction(
            text=text,
            parts=tuple(self._parts),
            headings=tuple(heading for heading in self._headings if heading.start < self._length),
            title=title or None,
            metadata={key: value for key, value in metadata.items() if value not in ("", None)},
            media_type=media_type,
            extractor=extractor,
            warnings=tuple(warnings),
            quality=quality_of(text, self._parts, self._pages, facts, tables=self._tables, cut=self._cut),
        )

    def _add(self, piece: str) -> int | None:
        gap = 2 if self._length else 0
        if self._allowance is not None:
            room = self._allowance.characters - self._length - gap
            if len(piece) > room:
                self._cut += len(piece) - max(0, room)
                piece = piece[: max(0, room)].rstrip()
        if not piece:
            return None
        if gap:
            self._pieces.append("\n\n")
        start = self._length + gap
        if self._open[0] < 0:
            self._open = (start, *self._open[1:])
        self._joined += self._joins
        self._joins = False
        self._pieces.append(piece)
        self._length = start + len(piece)
        return start

    def _close_part(self) -> None:
        start, kind, number, name, text_format = self._open
        if 0 <= start < self._length:
            name = one_line(name)[:MAX_TITLE_CHARACTERS].rstrip() if name else None
            self._parts.append(Part(start, self._length, kind, number, name, text_format, self._language))
