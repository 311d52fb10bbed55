"""Words of a question in a text, to be marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from parquetry.language.stems import fold, stemmer, stop_words

LONGEST_EXTRACT = 300
"""characters of a text that a result shows: about three lines"""
_LEAST = 160
"""characters from the sentence that fits best to the end of its text; with fewer, some before it are shown as well"""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MarkedPart:
    """A piece of a text."""

    text: str
    marked: bool
    """True for a word of the question"""


def marked(text: str, query: str, language: str) -> list[MarkedPart]:
    """Return a text in pieces, in order, with the words of a question marked, in any inflection.

    Args:
        text: the text.
        query: question as typed.
        language: language of stems and stop words, as in `search.language`.
    """
    stem = stemmer(language)
    asked = [fold(word) for word in _WORD.findall(query)]
    terms = set(stem([word for word in asked if word not in stop_words(language)] or asked))
    words = list(_WORD.finditer(text))
    stems = stem([fold(word[0]) for word in words])
    parts: list[MarkedPart] = []
    end = 0
    for word, found in zip(words, stems, strict=True):
        if found not in terms:
            continue
        if word.start() > end:
            parts.append(MarkedPart(text[end : word.start()], marked=False))
        parts.append(MarkedPart(word[0], marked=True))
        end = word.end()
    return [*parts, MarkedPart(text[end:], marked=False)] if end < len(text) else parts


def extract(text: str, quoted: tuple[int, int]) -> str:
    """Return about three lines of a text around its best sentence, in one line, cut between words.

    Args:
        text: the text.
        quoted: span of the sentence within the text.
    """
    start = quoted[0]
    if len(text) - start < _LEAST:
        gap = re.compile(r"\s").search(text, max(0, len(text) - LONGEST_EXTRACT), start)
        start = 0 if len(text) <= LONGEST_EXTRACT else gap.end() if gap else start
    stop = min(len(text), start + LONGEST_EXTRACT)
    if stop < len(text):
        stop = max(text.rfind(" ", start, stop), start + LONGEST_EXTRACT // 2)
    lines = (columns(line) for line in text[start:stop].splitlines() if line.strip("|-: "))
    shown = " ".join(" ".join(lines).split()).lstrip("# ")
    return f"{'… ' if start else ''}{shown}{' …' if stop < len(text) else ''}"


def columns(row: str) -> str:
    """Return a row of a Markdown table with its cells apart, as people write them; any other line as it is."""
    if not row.strip().startswith("|") and not row.rstrip().endswith("|"):
        return row
    return " · ".join(cell.strip() for cell in row.strip().strip("|").split("|") if cell.strip())


def headings_of(headings: Sequence[str]) -> str:
    """Return the headings above a passage, the nearest two."""
    return " › ".join(headings[-2:])
