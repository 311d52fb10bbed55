"""Lines around tables, judged one by one: captions, units, column names, rows and running text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FRAGMENT_CHARACTERS = 24
"""characters of the longest line in lower case that is part of a column name: `than 1 year`"""
_CAPTION_CHARACTERS = 100
"""characters of the longest line that is a caption rather than running text"""
_LABEL_CHARACTERS = 130
"""the same for a line within a table, where labels take several lines"""
SENTENCE_CHARACTERS = 200
"""the same for a line that announces what follows with a colon"""
TAIL = 160
"""characters at the end of a line in which its values are looked for"""

_YEAR = r"(?:19|20)\d\d"
_DAY = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\.? \d{1,2}\b,?"
)
_PERIOD = rf"(?:{_YEAR}|Q[1-4])\b"
_VALUE = re.compile(r"[($€£¥+-]{0,4}\d[\d,.]*(?<![,.])[)%]{0,2}(?:\(\w\))?|[—–-]")
LAST_OF_ROW = "0123456789)%—–-$"
LIKE_A_ROW = re.compile(
    r"(?:[\d)%—–-]\s[ \xa0$€£¥(+-]{0,8}[\d—–-]|[$€£¥,.]\d)[\d,.]{0,20}[)%]{0,2}[ \xa0$]{0,4}$", re.MULTILINE
)
"""end of a line that may be the row of a table; most pages without tables have none"""
_MARK = re.compile(r"[$€£¥%)(]{1,2}")
_IS_YEAR = re.compile(rf"{_YEAR}$")
_BEGINS_WITH_YEAR = re.compile(rf"{_YEAR} [A-Z]")
AMOUNT = re.compile(r"[$€£¥%]|\d[,.]\d|\d{5}|[(]\d+[)]")
COLUMNS = re.compile(rf"{_PERIOD}[^\n]*?\b{_PERIOD}")
DATED = re.compile(rf"\b(?:{_DAY}|{_PERIOD})", re.IGNORECASE)
_ANNOUNCING = re.compile(r"\b(?:follow|table|below|summar|present|consist|compris|shown)", re.IGNORECASE)
UNIT = re.compile(
    r"\b(?:in|en)\s(?:[\w.$€£¥]{1,12}\s){0,3}(?:thousands|[mb]illions|trillions|milliers|miles|millones|Mio|Mrd|Tsd|"
    r"Tausend|Millionen|Milliarden|TEUR|percent)\b|"
    r"\$\s?000s?\b|(?:[$€£¥]|\b[A-Z]{3})\s?(?:thousand|[mb]illion|[mb]n)s?\b",
    re.IGNORECASE,
)
COLUMNS_BEFORE_ROW = re.compile(
    r"(?:\([^()\n]{1,80}\)\s|(?i:in (?:millions|thousands)\b)[^\d$€£¥\n]{0,60}\s)?"
    rf"(?:{_DAY} )?{_YEAR}(?: (?:{_DAY} )?{_YEAR}){{1,5}}\b|\([^()\n]{{1,80}}\)(?= )"
)
_COLUMNS_AFTER_SENTENCE = re.compile(rf"(?<=[.:]) (?:{_DAY} )?{_YEAR}(?: (?:{_DAY} )?{_YEAR}){{1,5}}$")
_GROUP_AFTER_YEAR = re.compile(rf"(?<=\b{_YEAR}) [A-Z][^\d:\n]{{0,60}}:$")
_NOT_A_CAPTION = re.compile(r"[a-z|#>]|[-*+•] |!\[")


def is_fragment(line: str) -> bool:
    """Return True for part of a column name or of a row that a page shows on a line of its own: `1-3`, `years`, `$`."""
    if len(line) > _FRAGMENT_CHARACTERS:
        return False
    if line[0].islower():
        return line[-1] not in ".;,:"
    return not any(map(str.isalpha, line)) and not any(_IS_YEAR.match(word) for word in line.split())


def is_running_text(line: str) -> bool:
    """Return True for part of a paragraph, which ends the lines that belong to a table below."""
    if len(line) > (SENTENCE_CHARACTERS if line.endswith(":") else _CAPTION_CHARACTERS):
        return True
    if UNIT.search(line) and len(line) < _CAPTION_CHARACTERS and not line.endswith("."):
        return False
    begins = line[0].isupper() or _BEGINS_WITH_YEAR.match(line) is not None
    if line[-1] == "," and begins and DATED.search(line) and len(line) < _CAPTION_CHARACTERS // 2:
        return False
    if line[-1] in ".;,":
        words = line.split()
        return line[-1] == ";" or len(words) > 8 or not (line[0].isupper() and _is_capitalised(line))
    return _NOT_A_CAPTION.match(line) is not None or (
        line[0].isdigit() and _BEGINS_WITH_YEAR.match(line) is None and not names_columns(line)
    )


def announces(line: str) -> bool:
    """Return True for the end of a sentence that announces a table."""
    return line[-1] == ":" and _ANNOUNCING.search(line) is not None


def columns_after_sentence(line: str) -> tuple[str, str] | None:
    """Return a sentence that announces a table, and the column names that follow it on its line; else None."""
    found = _COLUMNS_AFTER_SENTENCE.search(line[-TAIL:])
    if found is None:
        return None
    sentence = line[: -len(found[0])]
    return (sentence, found[0].strip()) if _ANNOUNCING.search(sentence[-SENTENCE_CHARACTERS:]) else None


def without_group(line: str) -> str:
    """Return column names without the label of the first group of rows on their line: `2018 ASSETS Current assets:`."""
    return line if announces(line) else _GROUP_AFTER_YEAR.sub("", line)


def ends_table(line: str) -> bool:
    """Return True for a line that is no label of a row, not even the first line of a long one."""
    if len(line) > _LABEL_CHARACTERS or announces(line):
        return True
    return line[-1] == "." and is_running_text(line)


def may_end_a_head(line: str) -> bool:
    """Return False for the label of a group of rows (`Current assets:`), and for the first line of a row's label."""
    return (_is_capitalised(line) and line[-1] not in ":,") or announces(line)


def _is_capitalised(line: str) -> bool:
    return not any(word[0].islower() for word in line.split() if len(word) > 3)


def names_columns(line: str) -> bool:
    """Return True for a line of column names by their periods: `Year ended May 31, 2018 2017 2016`."""
    return (
        len(line) <= _CAPTION_CHARACTERS
        and line[-1] not in ".,;:"
        and COLUMNS.search(line) is not None
        and AMOUNT.search(line) is None
    )


def values_of(line: str) -> tuple[int, bool]:
    """Return the number of values at the end of a line, and True if they make it the row of a table for certain.

    Years alone are none: they are column names, or end a sentence.
    """
    if line[-1] not in LAST_OF_ROW:
        return 0, False
    found: list[str] = []
    for word in reversed(line[-TAIL:].split()):
        if _VALUE.fullmatch(word):
            found.append(word)
        elif not _MARK.fullmatch(word):
            break
    amounts = [word for word in found if not _IS_YEAR.match(word)]
    if not amounts or (len(found) == 1 and len(line) > _CAPTION_CHARACTERS):
        return 0, False
    return len(found), len(amounts) > 1 and any(AMOUNT.search(word) for word in amounts)


def lines_of(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each line of a span, with single spaces."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        line = text[start:stop]
        bare = line.lstrip()
        yield start + len(line) - len(bare), " ".join(bare.split())
        start = stop + 1
