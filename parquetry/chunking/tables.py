"""Heads of tables: caption, unit and column names that stand above the rows, for chunks that begin inside a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field

from parquetry.chunking.splitter import is_delimiter_row
from parquetry.chunking.table_lines import (
    AMOUNT,
    COLUMNS,
    COLUMNS_BEFORE_ROW,
    DATED,
    LAST_OF_ROW,
    LIKE_A_ROW,
    SENTENCE_CHARACTERS,
    TAIL,
    UNIT,
    announces,
    columns_after_sentence,
    ends_table,
    is_fragment,
    is_running_text,
    lines_of,
    may_end_a_head,
    names_columns,
    values_of,
    without_group,
)
from parquetry.model import Part

MAX_HEAD_CHARACTERS = 400
"""characters of the head of a table; every chunk that begins inside the table carries it"""
_BETWEEN = " | "
_MOST_LINES = 6
"""lines of a head"""
_MOST_KEPT = 40
"""lines above a table that are looked at; column names of one word each take many"""
_MOST_NAMES = 4
"""lines of column names between unit or periods and the rows; more are not told from other labels"""
_REACH = 800
"""characters above a table in which its head is looked for"""
_LABELS_BETWEEN = 4
"""lines without a value after which a table of plain lines has ended"""
_FEWEST_ROWS = 2
"""rows of a table of plain lines"""
_WIDEST_HEADER = 5000
"""characters of a header row that is compared with that of the next block"""


@dataclass(slots=True)
class _Table:
    """Table with the lines above its rows."""

    start: int
    """0-based, of the first line of the head"""
    end: int
    """one past the end of the last row"""
    lines: list[tuple[int, str]]
    """start and text of each line of the head"""
    columns: str = ""
    """header row of a Markdown table, which its blocks repeat"""
    values: int = 0
    """number of values of the last row of a table of plain lines"""
    rows: int = 0


@dataclass(slots=True)
class Tables:
    """The tables of one text, added from its start to its end.

    Args:
        text: the whole text.
    """

    text: str
    _tables: list[_Table] = field(default_factory=list)
    """tables with something above their rows, in their order"""
    _plain: _PlainTables = field(init=False)
    _last: _Table | None = None
    """last Markdown table"""
    _starts: list[int] | None = None

    def __post_init__(self) -> None:
        self._plain = _PlainTables(self._tables)

    def add(self, start: int, end: int, floor: int) -> None:
        """Add a Markdown table.

        Args:
            start: 0-based.
            end: one past the end.
            floor: start of the region, where the search for its caption stops.
        """
        names = self._header(start, end)
        columns = names if len(names) <= _WIDEST_HEADER else ""
        last = self._last
        if columns and last is not None and columns == last.columns and not self.text[last.end : start].strip():
            last.end = end
            return
        floor = max(floor, start - _REACH, last.end if last is not None else 0)
        above = _Above()
        for place, line in lines_of(self.text, floor, start):
            above.add(place, line.strip("*_"))
        lines = above.head(whole=False)
        if floor == start - _REACH and lines and lines[0][0] == floor and self.text[floor - 1] != "\n":
            lines = lines[1:]
        cells = names[:MAX_HEAD_CHARACTERS].strip(" \t|")
        if cells.replace("|", "").strip():
            lines.append((start, cells))
        self._last = _Table(lines[0][0] if lines else start, end, lines, columns)
        if lines:
            self._tables.append(self._last)

    def _header(self, start: int, end: int) -> str:
        """Return the header row of a Markdown table; empty if there is none."""
        stop = self.text.find("\n", start, end)
        if stop < 0:
            return ""
        second = self.text.find("\n", stop + 1, end)
        return self.text[start:stop] if is_delimiter_row(self.text[stop + 1 : end if second < 0 else second]) else ""

    def add_lines(self, region: Part) -> None:
        """Add the tables of a region that are plain lines, as on a page of a PDF; Markdown and code have none."""
        if region.format == "text":
            self._plain.add(self.text, region.start, region.end)
        else:
            self._plain.close()

    def head(self, start: int, titles: Collection[str]) -> str:
        """Return what stands above the rows with which a chunk begins, on one line; empty outside a table.

        Args:
            start: of the chunk.
            titles: headings above the chunk, which are not repeated.
        """
        if self._starts is None:
            self._plain.close()
            self._starts = [table.start for table in self._tables]
        place = bisect_right(self._starts, start) - 1
        if place < 0 or start >= self._tables[place].end:
            return ""
        table = self._tables[place]
        lines = [line for begin, line in table.lines if begin < start and line not in titles]
        if table.columns and self.text.startswith(table.columns, start) and lines and table.lines[-1][1] == lines[-1]:
            lines.pop()
        return _BETWEEN.join(lines)[:MAX_HEAD_CHARACTERS].rstrip()


class _Above:
    """The last lines above the rows of a table."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str, bool]] = []
        """start, text, and True if a blank line stands before it"""
        self._blank = False

    def clear(self) -> None:
        self._lines.clear()
        self._blank = False

    def add(self, start: int, line: str) -> None:
        if not line:
            self._blank = True
            return
        if is_fragment(line):
            return
        if is_running_text(line):
            self.clear()
            return
        if announces(line):
            # Nothing above a sentence that announces a table belongs to it.
            self.clear()
        self._lines.append((start, without_group(line), self._blank))
        self._blank = False
        del self._lines[:-_MOST_KEPT]

    def announces(self, row: str) -> bool:
        """Return True if the last two lines make a line with one value the row of a table: a unit, periods, a date."""
        if not AMOUNT.search(row):
            return False
        says = DATED if any(sign in row for sign in "$€£¥") else COLUMNS
        return any(UNIT.search(line) or says.search(line) for _, line, _ in self._lines[-2:])

    def head(self, *, whole: bool, said: bool = False) -> list[tuple[int, str]]:
        """Return the lines that belong to a table that follows.

        Args:
            whole: True if column names are among them; they end the head, because labels of rows may follow.
            said: True if the first row begins with column names or a unit.
        """
        lines = self._lines
        named = [place for place, (_, line, _) in enumerate(lines) if COLUMNS.search(line)] if whole else []
        if named:
            below = named[-1] + 1
            while below < len(lines) and UNIT.search(lines[below][1]):
                below += 1
            lines = lines[:below]
        says_unit = [place for place, each in enumerate(lines) if UNIT.search(each[1])]
        said_at = [*says_unit[-1:], *named[-1:]]
        anchor, top = max(said_at, default=-1), min(said_at, default=-1)
        if anchor >= 0 and len(lines) - 1 - anchor > _MOST_NAMES:
            lines = lines[: anchor + 1]
        found: list[tuple[int, str]] = []
        captioned = blank = False
        room = MAX_HEAD_CHARACTERS
        for place in range(len(lines) - 1, -1, -1):
            start, line, blank_before = lines[place]
            says = UNIT.search(line) is not None or (whole and DATED.search(line) is not None)
            room -= len(line) + len(_BETWEEN)
            if room < 0 or (blank and captioned and not says and place <= top):
                break
            if len(found) == _MOST_LINES:
                if anchor in (-1, len(lines) - 1):
                    # Column names that are spread over so many lines are not told from captions.
                    return [each for each in found[::-1] if UNIT.search(each[1])]
                break
            said = said or says
            if not whole or said or may_end_a_head(line):
                found.append((start, line))
                captioned = captioned or not says
                blank = blank_before
            else:
                blank = blank or blank_before
            if place == top:
                captioned = False
        certain = said or not whole or any(line[-1] == ":" for _, line in found)
        return found[::-1] if certain else []


class _PlainTables:
    """Finds tables that are plain lines: labels followed by values, below column names or a unit.

    Args:
        tables: to which they are added.
    """

    def __init__(self, tables: list[_Table]) -> None:
        self._tables = tables
        self._open: _Table | None = None
        self._above = _Above()
        self._between = 0
        """lines without values since the last row of the open table"""
        self._resumed = False
        """True on a new page, until its first line tells whether the table goes on"""

    def add(self, text: str, start: int, end: int) -> None:
        self._above.clear()
        self._resumed = True
        if LIKE_A_ROW.search(text, start, end) is None:
            self.close()
            return
        for place, line in lines_of(text, start, end):
            if not line:
                self._above.add(place, line)
            elif (announced := columns_after_sentence(line)) is not None:
                self.close()
                for each in announced:
                    self._above.add(place, each)
            elif len(line) > SENTENCE_CHARACTERS and line[-1] not in LAST_OF_ROW:
                self._above.clear()
                self.close()
            elif names_columns(line):
                self.close()
                self._above.add(place, line)
            else:
                self._add(place, line)

    def _add(self, place: int, line: str) -> None:
        values, certain = values_of(line)
        table = self._open
        if table is not None and self._resumed and values != table.values:
            self.close()
            table = None
        self._resumed = False
        if values and (certain or table is not None or self._above.announces(line[-TAIL:])):
            if table is None:
                self._open = table = self._begin(place, line)
            table.end, table.values = place + len(line), values
            table.rows += 1
            self._above.clear()
            self._between = 0
            return
        self._above.add(place, line)
        self._between += 1
        if self._between > _LABELS_BETWEEN or ends_table(line):
            self.close()

    def _begin(self, place: int, line: str) -> _Table:
        joined = COLUMNS_BEFORE_ROW.match(line)
        names = joined[0] if joined is not None and (UNIT.search(joined[0]) or COLUMNS.search(joined[0])) else ""
        lines = self._above.head(whole=True, said=bool(names))
        if names:
            lines.append((place, names))
        return _Table(lines[0][0] if lines else place, place, lines)

    def close(self) -> None:
        """End the open table; only one with a head and several rows counts."""
        if self._open is not None and self._open.lines and self._open.rows >= _FEWEST_ROWS:
            self._tables.append(self._open)
        self._open = None
