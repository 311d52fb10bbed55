"""Exact details of a statement, which a merge must not lose or add: numbers, times, identifiers, names, negations.

The rules prefer a false detail to a missed one: two entries that stay apart do less harm than one that says something
wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parquetry.sessions import cue_words as cues
from parquetry.sessions.quantities import Quantity, moments_and_quantities
from parquetry.sessions.statement import Statement, Word, content, read

_TITLED = 0.7
"""share of capitalised words from which capitals carry no information"""
_NEAR = 3
"""number of words that identify the object of a negation"""
_QUOTES = re.compile(r"`([^`]+)`|\"([^\"]+)\"|“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|(?<!\w)'([^']+)'(?!\w)")
_ALTERNATIVES = frozenset(("and/or", "he/she", "she/he", "his/her", "him/her", "s/he"))
_PLAIN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*[?-]?$")
"""letters alone, with hyphens and apostrophes between them"""
_SIGNS = re.compile(r"[<>|*^~$#@\\&=+%]")
_COMMON_SIGNS = frozenset("&+=<>%")
"""signs that stand for words, or are read with a number"""
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?$")
"""e.g, U.S"""


@dataclass(frozen=True, slots=True)
class Cue:
    """A negation, a preference over something, or a doubt, by the stems of its object."""

    near: tuple[str, ...]
    """first content words; empty if it stands alone"""
    reach: frozenset[str]
    """all words of its clause"""

    def agrees(self, other: Cue) -> bool:
        """Return True if two cues may have the same object."""
        return not self.near or not other.near or bool(other.reach.intersection(self.near))


@dataclass(frozen=True, slots=True)
class Facts:
    """Exact details of one statement."""

    statement: Statement
    quantities: tuple[Quantity, ...]
    moments: frozenset[str]
    """dates, times of day and words of the calendar, in one spelling"""
    identifiers: frozenset[str]
    """identifiers as written: versions, paths, flags, codes"""
    quotes: frozenset[str]
    """text in quotation marks or set as code"""
    names: frozenset[str]
    """case-folded: capitalised within a sentence, in capitals, in mixed case"""
    openers: frozenset[str]
    """case-folded: capitalised at the beginning of a sentence and not known to be an ordinary word"""
    denials: tuple[Cue, ...]
    contrasts: tuple[Cue, ...]
    """things to which something is preferred"""
    doubts: tuple[Cue, ...]
    """things stated as merely possible"""
    modalities: frozenset[str]
    """`obligation`, `possibility`, `restriction`"""
    stems: frozenset[str]
    """stems of the content words"""


def facts(text: str) -> Facts:
    """Extract the exact details of a text."""
    statement = read(text)
    moments, quantities, rest = moments_and_quantities(statement.words)
    identifiers = frozenset(word.raw for word in rest if _is_identifier(word.raw))
    others = [word for word in rest if word.raw not in identifiers]
    titled = _is_titled(others)
    lower = {word.plain for word in statement.words if word.raw == word.raw.lower()}
    return Facts(
        statement,
        quantities,
        moments,
        identifiers,
        frozenset(_quotes(statement.text)),
        frozenset(_name(word) for word in others if _is_name(word, titled)),
        frozenset(word.plain for word in others if _is_opener(word, titled) and word.plain not in lower),
        tuple(_denials(statement)),
        tuple(_contrasts(statement.words)),
        tuple(_doubts(statement.words, frozenset(rest))),
        frozenset(cues.MODALITIES[word.plain] for word in rest if word.plain in cues.MODALITIES),
        content(statement.words),
    )


def _quotes(text: str) -> Iterator[str]:
    for groups in _QUOTES.findall(text):
        quote = "".join(groups).strip()
        if named := quote.strip(",.;:!?") or quote:
            yield named


def _is_identifier(raw: str) -> bool:
    if not any(map(str.isalnum, raw)):
        return bool(_SIGNS.search(raw)) and raw not in _COMMON_SIGNS
    if _PLAIN.match(raw) or _INITIALS.match(raw):
        return False
    return raw.casefold() not in _ALTERNATIVES


def _is_titled(words: Sequence[Word]) -> bool:
    """Return True if capitals carry no information because most words have one."""
    meaning = [word for word in words if not word.function and word.raw[0].isalpha()]
    return len(meaning) > 2 and sum(word.raw[0].isupper() for word in meaning) > _TITLED * len(meaning)


def _is_name(word: Word, titled: bool) -> bool:
    letters = [each for each in word.raw if each.isalpha()]
    capitals = sum(each.isupper() for each in letters)
    if capitals == 0 or word.plain in ("i", "i'm", "i've", "i'd", "i'll"):
        return False
    return capitals > 1 or not word.raw[0].isupper() or not (word.first or titled)


def _name(word: Word) -> str:
    """Return the name in a word: APIs are more than one API."""
    several = word.raw.endswith("s") and word.raw[:-1].isupper() and len(word.raw) > 2
    return word.plain.removesuffix("s") if several else word.plain


def _is_opener(word: Word, titled: bool) -> bool:
    if not (word.first or titled) or not word.raw[0].isupper() or _is_name(word, titled):
        return False
    ordinary = word.function or word.plain in cues.OPENERS or word.plain.endswith(cues.ORDINARY_ENDINGS)
    cue = word.plain in cues.MODALITIES or any(word.plain in each for each in cues.NEGATIONS.values())
    return not ordinary and not cue


def _denials(statement: Statement) -> Iterator[Cue]:
    words = statement.words
    # A foreign name or a word or two do not change the language of an English statement.
    known = cues.NEGATIONS["english"] | cues.NEGATIONS[statement.language]
    for at, word in enumerate(words):
        following = [each.plain for each in words[at + 1 : at + 3]]
        bounds = word.plain in ("no", "not") and following[1:] == ["than"] and following[0] in cues.COMPARISONS
        if (word.plain in known and not bounds) or cues.NEGATING_CHARACTERS & set(word.plain):
            yield _cue(words, at, _NEAR)


def _contrasts(words: Sequence[Word]) -> Iterator[Cue]:
    preferring = -1
    for at, word in enumerate(words):
        pair = (word.plain, words[at + 1].plain if at + 1 < len(words) else "")
        if word.stem in ("prefer", "favor", "favour", "choos", "chose"):
            preferring = word.sentence
        if pair in (("rather", "than"), ("instead", "of")):
            yield _cue(words, at + 1, 1)
        elif word.plain == "over" and preferring == word.sentence:
            yield _cue(words, at, 1)


def _doubts(words: Sequence[Word], rest: frozenset[Word]) -> Iterator[Cue]:
    for at, word in enumerate(words):
        # A month is not a doubt.
        if cues.MODALITIES.get(word.plain) == "possibility" and word in rest:
            yield _cue(words, at, _NEAR)


def _cue(words: Sequence[Word], at: int, near: int) -> Cue:
    """Return the cue at a position with its object: the words after it in its clause, or else those just before it."""
    sentence = words[at].sentence
    reach: list[str] = []
    for word in words[at + 1 :] if not words[at].closes else ():
        if word.sentence != sentence or (reach and word.plain in cues.CLAUSE_ENDS):
            break
        if _means_something(word):
            reach.append(word.stem)
        if word.closes and reach:
            break
    if not reach:
        before = [word.stem for word in words[:at] if word.sentence == sentence and _means_something(word)]
        reach = before[: -near - 1 : -1]
    return Cue(tuple(reach[:near]), frozenset(reach))


def _means_something(word: Word) -> bool:
    return not word.function and word.plain not in cues.LIGHT and word.raw[0].isalpha()
