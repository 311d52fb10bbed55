"""Normalised keys of statements: texts that differ only in form are equal without a language model."""

from __future__ import annotations

import re
import unicodedata

from parquetry import ids

_CONTRACTED = (
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (re.compile(r"(?<=[a-z])n't\b"), " not"),
)
_OPENING = "\"'`“‘„«‹"
_CLOSING = "\"'`”’“»›.,;:!…。、"
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_QUOTATION_MARKS = "\"'`“”‘’„«»‹›"
_SEPARATORS = frozenset("-–—,.;:!…。、")
_ARTICLE_FOLLOWS = """
    about after and are as at be before been being but by did do does for from get gets give gives had has have if in
    into is keep keeps like likes make makes need needs not of on or over per prefer prefers than that then through to
    under use used uses using via want wants was were when which while with without write writes
"""
_BEFORE_ARTICLE = frozenset(_ARTICLE_FOLLOWS.split())
"""words after which `a` is an article; elsewhere it may be a name: vitamin A, plan A"""


def equal(one: str, other: str) -> bool:
    """Return True if two texts are one entry within a scope."""
    return ids.entry_id("", (), one) == ids.entry_id("", (), other)


def nearly_equal(one: str, other: str) -> bool:
    """Return True if two texts have the same words in order, up to case, punctuation, contractions and articles."""
    return normalised_key(one) == normalised_key(other)


def normalised_key(text: str) -> tuple[str, ...]:
    """Return the key that nearly equal texts share, and no others.

    Numbers, symbols, identifiers, names and negation are among the words, so texts that differ in them have different
    keys.
    """
    kept: list[str] = []
    before = ""
    for word in words(text):
        if word != "the" and not (word in ("a", "an") and (not before or before in _BEFORE_ARTICLE)):
            kept.append(word)
        before = word
    # A statement of nothing but articles and punctuation keeps its own words.
    return tuple(kept) or (ids.entry_id("", (), text),)


def words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, without surrounding punctuation and with contractions expanded.

    Symbols, and anything inside a word, stay: `3.5`, `--flag`, `C++`, `f(x)`, `<`, `why?`.
    """
    # The end is cut as for an id, so that one entry has one key.
    spaced = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    plain = spaced.rstrip(".!\u3002 ").replace("’", "'")
    for pattern, full in _CONTRACTED:
        plain = pattern.sub(full, plain)
    return [word for word in map(bare, plain.split()) if word]


def _sign(word: str) -> str:
    """Return a word without letters or digits; a statement about a sign in quotation marks is about the sign."""
    core = word.rstrip(",.;:!…。、")
    if len(core) > 2 and core[0] in _QUOTATION_MARKS and core[-1] in _QUOTATION_MARKS:
        return core
    sign = word.strip(_QUOTATION_MARKS)
    return "" if sign in _SEPARATORS else sign


def bare(word: str) -> str:
    """Strip the quotation marks, brackets and punctuation around a word."""
    if not any(map(str.isalnum, word)):
        return _sign(word)
    while True:
        stripped = word.lstrip(_OPENING).rstrip(_CLOSING)
        for opening, closing in _BRACKETS.items():
            if stripped.startswith(opening) and (closing not in stripped or stripped.endswith(closing)):
                stripped = stripped[1:].removesuffix(closing)
            elif stripped.endswith(closing) and opening not in stripped:
                stripped = stripped[:-1]
        if stripped == word:
            return word
        word = stripped
