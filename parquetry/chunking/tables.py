"""Heads of tables: caption, unit and column names that stand above the rows, for chunks that begin inside a table."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from parquetry.chunking.splitter import is_delimiter_row
from parquetry.model import Part

MAX_HEAD_CHARACTERS = 400
"""characters of the head of a table; every chunk that begins inside the table carries it"""
_BETWEEN = " | "
_MOST_LINES = 6
"""lines of a head"""
_REACH = 800
"""characters above a table in which its head is looked for"""
_CAPTION_CHARACTERS = 100
"""characters of the longest line that is a caption rather than running text"""
_LABEL_CHARACTERS = 130
"""the same for a line within a table, where labels take several lines"""
_SENTENCE_CHARACTERS = 200
"""the same for a line that announces what follows with a colon"""
_LABELS_BETWEEN = 4
"""lines without a value after which a table of plain lines has ended"""
_FEWEST_ROWS = 2
"""rows of a table of plain lines"""
_WIDEST_HEADER = 5000
"""characters of a header row that is compared with that of the next block"""
_TAIL = 160
"""characters at the end of a line in which its values are looked for"""

_YEAR = r"(?:19|20)\d\d"
_DAY = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\.? \d{1,2}\b,?"
)
_PERIOD = rf"(?:{_YEAR}|Q[1-4])\b"
_VALUE = re.compile(r"[($€£¥+-]{0,4}\d[\d,.]*(?<![,.])[)%]{0,2}(?:\(\w\))?|[—–-]")
_LAST_OF_ROW = "0123456789)%—–-$"
_LIKE_A_ROW = re.compile(
    r"(?:[\d)%—–-]\s[ \xa0$€£¥(+-]{0,8}[\d—–-]|[$€£¥,.]\d)[\d,.]{0,20}[)%]{0,2}[ \xa0$]{0,4}$", re.MULTILINE
)
"""end of a line that may be the row of a table; most pages without tables have none"""
_MARK = re.compile(r"[$€£¥%)(]{1,2}")
_IS_YEAR = re.compile(rf"{_YEAR}$")
_AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\d{5}|[(]\d+[)]")
_COLUMNS = re.compile(rf"{_PERIOD}[^\n]*?\b{_PERIOD}")
_DATED = re.compile(rf"\b(?:{_DAY}|{_PERIOD})", re.IGNORECASE)
_ANNOUNCING = re.compile(r"\b(?:follow|table|below|summar|present|consist|compris|shown)", re.IGNORECASE)
_UNIT = re.compile(
    r"\b(?:in|en)\s(?:[\w.$€£¥]{1,12}\s){0,3}(?:thousands|[mb]illions|trillions|milliers|miles|millones|Mio|Mrd|Tsd|"
    r"Tausend|Millionen|Milliarden|TEUR|percent)\b|"
    r"\$\s?000s?\b|(?:[$€£¥]|\b[A-Z]{3})\s?(?:thousand|[mb]illion|[mb]n)s?\b",
    re.IGNORECASE,
)
_COLUMNS_BEFORE_ROW = re.compile(
    rf"(?:\([^()\n]{{1,80}}\)\s)?(?:{_DAY} )?{_YEAR}(?: (?:{_DAY} )?{_YEAR}){{1,5}}\b|\([^()\n]{{1,80}}\)(?= )"
)
_NOT_A_CAPTION = re.compile(r"[a-z|#>]|[-*+•] |!\[")


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
        for place, line in _lines(self.text, floor, start):
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
        if _is_running_text(line):
            self.clear()
            return
        if _announces(line):
            # Nothing above a sentence that announces a table belongs to it.
            self.clear()
        self._lines.append((start, line, self._blank))
        self._blank = False
        del self._lines[: -2 * _MOST_LINES]

    def announces(self, row: str) -> bool:
        """Return True if the last two lines make a line with one value the row of a table: a unit, periods, a date."""
        if not _AMOUNT.search(row):
            return False
        says = _DATED if any(sign in row for sign in "$€£¥") else _COLUMNS
        return any(_UNIT.search(line) or says.search(line) for _, line, _ in self._lines[-2:])

    def head(self, *, whole: bool, said: bool = False) -> list[tuple[int, str]]:
        """Return the lines that belong to a table that follows.

        Args:
            whole: True if column names are among them; they end the head, because labels of rows may follow.
            said: True if the first row begins with column names or a unit.
        """
        lines = self._lines
        named = [place for place, (_, line, _) in enumerate(lines) if _COLUMNS.search(line)] if whole else []
        if named:
            lines = lines[: named[-1] + 1]
        found: list[tuple[int, str]] = []
        captioned = blank = False
        room = MAX_HEAD_CHARACTERS
        for start, line, blank_before in reversed(lines):
            says = _UNIT.search(line) is not None or (whole and _DATED.search(line) is not None)
            room -= len(line) + len(_BETWEEN)
            if room < 0 or (blank and captioned and not says):
                break
            if len(found) == _MOST_LINES:
                # Column names that are spread over so many lines are not told from captions.
                return [each for each in found[::-1] if _UNIT.search(each[1])]
            said = said or says
            if not whole or said or _may_end_a_head(line):
                found.append((start, line))
                captioned = captioned or not says
                blank = blank_before
            else:
                blank = blank or blank_before
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
        if _LIKE_A_ROW.search(text, start, end) is None:
            self.close()
            return
        for place, line in _lines(text, start, end):
            if not line:
                self._above.add(place, line)
            elif len(line) > _SENTENCE_CHARACTERS and line[-1] not in _LAST_OF_ROW:
                self._above.clear()
                self.close()
            elif _names_columns(line):
                self.close()
                self._above.add(place, line)
            else:
                self._add(place, line)

    def _add(self, place: int, line: str) -> None:
        values, certain = _values(line)
        table = self._open
        if table is not None and self._resumed and values != table.values:
            self.close()
            table = None
        self._resumed = False
        if values and (certain or table is not None or self._above.announces(line[-_TAIL:])):
            if table is None:
                self._open = table = self._begin(place, line)
            table.end, table.values = place + len(line), values
            table.rows += 1
            self._above.clear()
            self._between = 0
            return
        self._above.add(place, line)
        self._between += 1
        if self._between > _LABELS_BETWEEN or _ends_table(line):
            self.close()

    def _begin(self, place: int, line: str) -> _Table:
        joined = _COLUMNS_BEFORE_ROW.match(line)
        names = joined[0] if joined is not None and (_UNIT.search(joined[0]) or _COLUMNS.search(joined[0])) else ""
        lines = self._above.head(whole=True, said=bool(names))
        if names:
            lines.append((place, names))
        return _Table(lines[0][0] if lines else place, place, lines)

    def close(self) -> None:
        """End the open table; only one with a head and several rows counts."""
        if self._open is not None and self._open.lines and self._open.rows >= _FEWEST_ROWS:
            self._tables.append(self._open)
        self._open = None


def _is_running_text(line: str) -> bool:
    if len(line) > (_SENTENCE_CHARACTERS if line.endswith(":") else _CAPTION_CHARACTERS):
        return True
    if _UNIT.search(line) and len(line) < _CAPTION_CHARACTERS and not line.endswith("."):
        return False
    if line[-1] == "," and line[0].isupper() and _DATED.search(line) and len(line) < _CAPTION_CHARACTERS // 2:
        return False
    if line[-1] in ".;,":
        words = line.split()
        return line[-1] == ";" or len(words) > 8 or not (line[0].isupper() and _is_capitalised(line))
    return _NOT_A_CAPTION.match(line) is not None or (line[0].isdigit() and not _names_columns(line))


def _announces(line: str) -> bool:
    """Return True for the end of a sentence that announces a table."""
    return line[-1] == ":" and _ANNOUNCING.search(line) is not None


def _ends_table(line: str) -> bool:
    """Return True for a line that is no label of a row, not even the first line of a long one."""
    if len(line) > _LABEL_CHARACTERS or _announces(line):
        return True
    return line[-1] == "." and _is_running_text(line)


def _may_end_a_head(line: str) -> bool:
    """Return False for the label of a group of rows (`Current assets:`), and for the first line of a row's label."""
    return (_is_capitalised(line) and line[-1] not in ":,") or _announces(line)


def _is_capitalised(line: str) -> bool:
    return not any(word[0].islower() for word in line.split() if len(word) > 3)


def _names_columns(line: str) -> bool:
    """Return True for a line of column names by their periods: `Year ended May 31, 2018 2017 2016`."""
    return (
        len(line) <= _CAPTION_CHARACTERS
        and line[-1] not in ".,;:"
        and _COLUMNS.search(line) is not None
        and _AMOUNT.search(line) is None
    )


def _values(line: str) -> tuple[int, bool]:
    """Return the number of values at the end of a line, and True if they make it the row of a table for certain.

    Years alone are none: they are column names, or end a sentence.
    """
    if line[-1] not in _LAST_OF_ROW:
        return 0, False
    found: list[str] = []
    for word in reversed(line[-_TAIL:].split()):
        if _VALUE.fullmatch(word):
            found.append(word)
        elif not _MARK.fullmatch(word):
            break
    amounts = [word for word in found if not _IS_YEAR.match(word)]
    if not amounts or (len(found) == 1 and len(line) > _CAPTION_CHARACTERS):
        return 0, False
    return len(found), len(amounts) > 1 and any(_AMOUNT.search(word) for word in amounts)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each line of a span, with single spaces."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        line = text[start:stop]
        bare = line.lstrip()
        yield start + len(line) - len(bare), " ".join(bare.split())
        start = stop + 1
