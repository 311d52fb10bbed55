"""Text split into words that know their position."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from parquetry.language.stems import fold, stemmer, stop_words
from parquetry.sessions.normalise import bare

LANGUAGES = ("english", "german", "french", "spanish")
"""languages with known negations and function words; other languages are covered only where they share these"""
_CONTRACTED = (
    (re.compile(r"\b(ca)n't\b|\b(can)not\b", re.IGNORECASE), r"\1\2 not"),
    (re.compile(r"\bca not\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bshan't\b", re.IGNORECASE), "shall not"),
    (re.compile(r"(?<=[a-z])n't\b", re.IGNORECASE), " not"),
)
_CLOSERS = "\"'”’»)]"
_SENTENCE_ENDS = tuple(".!?:…")
_CLAUSE_ENDS = (*_SENTENCE_ENDS, ",", ";")
_NO_END = re.compile(r"^(?:[a-z]|[a-z]\.[a-z]|vs|dr|mr|mrs|ms|prof|st|no|approx|etc)\.$", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*•–—]|\d{1,2}[.)])$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
"""scripts without spaces between words"""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a statement."""

    raw: str
    """as written, without surrounding punctuation"""
    plain: str
    """case-folded, without a possessive ending"""
    stem: str
    function: bool
    """True for a function word in the language of the statement"""
    sentence: int
    """0-based number of its sentence or line"""
    first: bool
    """True for the first word of its sentence"""
    closes: bool
    """True if a comma or another sign ends a clause after it"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A text, read once for all questions about it."""

    text: str
    """NFKC, with straight apostrophes and single spaces"""
    words: tuple[Word, ...]
    language: str
    """the member of `LANGUAGES` with most function words here"""


def read(text: str) -> Statement:
    """Split a text into words."""
    straight = unicodedata.normalize("NFKC", text).replace("’", "'")
    for pattern, full in _CONTRACTED:
        straight = pattern.sub(full, straight)
    found: list[tuple[str, int, bool, bool]] = []
    sentence = 0
    for line in straight.splitlines():
        first = True
        for token in line.split():
            word, inner = bare(token), token.rstrip(_CLOSERS)
            if word and not (first and _BULLET.match(token)):
                found.append((word, sentence, first, inner.endswith(_CLAUSE_ENDS) or ")" in token[len(inner) :]))
                first = False
            if inner.endswith(_SENTENCE_ENDS) and not _NO_END.match(token):
                sentence, first = sentence + 1, True
        sentence += 1
    plain = [word.casefold().removesuffix("'s").removesuffix("'") for word, *_ in found]
    folded = [fold(word) for word in plain]
    stems = stemmer("english")(folded)
    language = max(LANGUAGES, key=lambda each: sum(word in _function_words(each) for word in folded))
    words = tuple(
        Word(raw, plain[at], stems[at], folded[at] in _function_words(language), number, first, closes)
        for at, (raw, number, first, closes) in enumerate(found)
    )
    return Statement(" ".join(straight.split()), words, language)


def content(words: Sequence[Word]) -> frozenset[str]:
    """Return the stems of the content words; for scripts without spaces, pairs of neighbouring characters."""
    stems: set[str] = set()
    for word in words:
        if _UNSPACED.search(word.plain):
            stems.update(word.plain[at : at + 2] for at in range(max(1, len(word.plain) - 1)))
        elif not word.function and any(map(str.isalnum, word.plain)):
            stems.add(word.stem)
    return frozenset(stems)


@functools.cache
def _function_words(language: str) -> frozenset[str]:
    return stop_words(language)
