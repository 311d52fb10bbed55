"""Comparison of a statement with its evidence: its exact details have to occur there, and its subject has to be near.

Words alone cannot show that the evidence entails a statement. They can show that it does not: by a name, a number or a
quotation that is missing, or by a different subject.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from parquetry.embed.base import Embedder
from parquetry.embed.registry import open_embedder
from parquetry.sessions import cue_words as cues
from parquetry.sessions.distill.passages import MessageSentence, MessageText, folded, holds, passage
from parquetry.sessions.facts import Facts, facts
from parquetry.sessions.quantities import Quantity
from parquetry.settings.embedding import EmbeddingSettings

_REPORTING = """
    user users assistant ai bot chatbot speaker person people someone somebody team company customer client developer
    author member
    say said mention mentioned state stated report reported note noted tell told ask asked want wants wanted like likes
    liked prefer prefers preferred use uses used using make makes made get gets got have has had need needs needed
"""
_REPORTING_WORDS = frozenset(_REPORTING.split())
"""words that a statement adds to the evidence, or leaves out"""
_ROLES = frozenset(("user", "users", "assistant", "ai", "speaker", "customer", "client", "developer", "author", "team"))
"""words for the speaker, capitalised or not"""
_NAME_ENDINGS = ("s", "es", "y", "ql")
"""endings in which spellings of one name differ: Postgres and PostgreSQL, API and APIs"""
_RELATIVE = """
    today tonight yesterday tomorrow now currently ago last next this coming past since recently
    heute gestern morgen letzte letzten nächste nächsten aujourd'hui hier demain dernier dernière prochain prochaine
    hoy ayer mañana pasado pasada próximo próxima
"""
_RELATIVE_WORDS = frozenset(_RELATIVE.split())
"""words from which a date can be calculated"""
_DAYS = """
    monday tuesday wednesday thursday friday saturday sunday weekend
    montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche
    lunes martes miércoles jueves viernes sábado domingo
"""
_WEEKDAYS = frozenset(_DAYS.split()) | frozenset(day.removesuffix("s") for day in _DAYS.split())
_ISO = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")
_WORDY = re.compile(r"(\d{4})?-(\d{2})-(\d{2})?")
_CLOCK = re.compile(r"(\d{2}):(\d{2})")
_YEARS = 1
"""maximum difference between the session's year and that of a calculated date"""
_SENTENCES = 64
"""maximum sentences of the evidence to compare by vector: those that share most words"""
_PREFIX = 4
"""minimum letters that two stems share to be spellings of one word"""
_TOGETHER = 3
"""neighbouring sentences that a statement may summarise"""
_NAMED = 3
"""maximum things named in a detail"""

SUPPORT = 0.5
"""Minimum of the mean of two numbers: the share of a statement's words found in its evidence, and their cosine.

Source: docs/decisions/0015-evidence.md"""


def unsupported(statement: str, evidence: Sequence[str], said: Sequence[str], at: datetime) -> str | None:
    """Return the reason why a statement is not supported by its evidence; None if there is no objection.

    Args:
        statement: of the model.
        evidence: texts of the messages that it names, and of the messages that they answer.
        said: texts of the session's messages, where a name may occur for which the evidence has a pronoun.
        at: UTC, time of the message; relative dates are calculated from it.
    """
    one, there = facts(statement), [passage(text) for text in evidence]
    if wrong := inexact(one, there, said, at):
        return wrong
    words, cosine = nearness(one, there)
    if support(words, cosine) >= SUPPORT:
        return None
    return (
        f"its evidence is about something else: it has {words:.0%} of its words, its nearest sentence a cosine of "
        f"{cosine:.2f}, and the mean of both is below {SUPPORT:g}"
    )


def inexact(one: Facts, there: Sequence[MessageText], said: Sequence[str], at: datetime) -> str | None:
    """Return the names, numbers and other details of a statement missing from its evidence; None if it has all."""
    for what, absent in (
        ("the name", _absent_names(one, [*there, *map(passage, said)])),
        ("the identifier", _absent_identifiers(one, there)),
        ("the number", _absent_numbers(one, there, at)),
        ("the date", _absent_moments(one, there, at)),
        ("the quotation", _absent_quotes(one, there)),
    ):
        if found := list(dict.fromkeys(absent)):
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            return f"its evidence does not have {what} {', '.join(found[:_NAMED])}{more}"
    return None


def nearness(one: Facts, there: Sequence[MessageText]) -> tuple[float, float]:
    """Return the share of a statement's words found in its evidence, and the cosine of the nearest sentence."""
    stems = _telling(one)
    words = max((_shared_words(stems, each.sentences) for each in there), default=0.0)
    sentences = [sentence for each in there for sentence in each.sentences]
    sentences.sort(key=lambda sentence: -len(_shared(stems, sentence)))
    texts = [one.statement.text, *(sentence.text for sentence in sentences[:_SENTENCES])]
    # Not the whole table of the model, as for documents: these are few texts.
    vectors = _embedder().embed_queries(texts)
    return words, float((vectors[1:] @ vectors[0]).max()) if len(texts) > 1 else 0.0


@functools.cache
def _embedder() -> Embedder:
    """Return the bundled model, whatever embeds the corpus: it was measured, costs nothing and sends nothing out."""
    return open_embedder("wordllama", EmbeddingSettings())


def support(words: float, cosine: float) -> float:
    """Combine the share of a statement's words found in its evidence with the cosine."""
    return (words + max(cosine, 0.0)) / 2


def _shared_words(stems: frozenset[str], sentences: Sequence[MessageSentence]) -> float:
    """Return the largest share of stems found in a few neighbouring sentences."""
    if not stems:
        return 1.0
    shared = [_shared(stems, sentence) for sentence in sentences]
    windows = (frozenset[str]().union(*shared[first : first + _TOGETHER]) for first in range(len(shared)))
    return max((len(window) / len(stems) for window in windows), default=0.0)


def _shared(stems: frozenset[str], sentence: MessageSentence) -> frozenset[str]:
    """Return the stems found in a sentence, possibly shorter or longer: prod and production."""
    beginnings: dict[str, list[str]] = defaultdict(list)
    for stem in sentence.stems:
        beginnings[stem[:_PREFIX]].append(stem)
    return frozenset(
        stem
        for stem in stems
        if stem in sentence.stems
        or any(
            min(len(stem), len(other)) >= _PREFIX and (stem.startswith(other) or other.startswith(stem))
            for other in beginnings.get(stem[:_PREFIX], ())
        )
    )


def _telling(one: Facts) -> frozenset[str]:
    """Return the content stems of a statement, without the exact details, which have to be present in any case."""
    reporting = {word.stem for word in one.statement.words if word.plain in _REPORTING_WORDS | cues.UNITS.keys()}
    exact = {stem for stem in one.stems if any(map(str.isdigit, stem))}
    return one.stems - reporting - exact or one.stems


def _absent_names(one: Facts, there: Sequence[MessageText]) -> Iterator[str]:
    for name in sorted(one.names):
        if name in _ROLES or name.rstrip("0123456789") in _ROLES:
            continue
        parts = [part for part in re.split(r"[-/]", name) if part] or [name]
        if not any(holds(each, name) or all(_is_named(part, each) for part in parts) for each in there):
            yield name
    for opener in sorted(one.openers - _ROLES - _REPORTING_WORDS):
        # With one more ending it is an ordinary word rather than a name, and counts in the share of words.
        if not opener.endswith("s") and not any(_begins(opener, word) for each in there for word in each.plain):
            yield opener


def _begins(one: str, other: str) -> bool:
    """Return True if two words share a prefix: for a short word, all of it."""
    common = max(_PREFIX, len(one) - 3) if len(one) > _PREFIX else len(one)
    return one[:common] == other[:common]


def _is_named(name: str, there: MessageText) -> bool:
    if name in there.plain or name.replace(".", "") in there.plain:
        return True
    longer = any(name + ending in there.plain for ending in _NAME_ENDINGS)
    return longer or any(name.endswith(end) and name.removesuffix(end) in there.plain for end in _NAME_ENDINGS)


def _absent_identifiers(one: Facts, there: Sequence[MessageText]) -> Iterator[str]:
    for raw in sorted(one.identifiers):
        whole = folded(raw).rstrip("/")
        forms = {whole, whole.removesuffix("()"), whole.removesuffix("'s")} - {""}
        if any(holds(each, form) for each in there for form in forms):
            continue
        parts = whole.split("/")
        # Words with a slash between them are not a path.
        if len(parts) > 1 and all(part.isalpha() and any(holds(each, part) for each in there) for part in parts):
            continue
        yield raw


def _absent_quotes(one: Facts, there: Sequence[MessageText]) -> Iterator[str]:
    for quote in sorted(one.quotes):
        form = folded(quote)
        if any(map(str.isalnum, form)) and not any(holds(each, form) for each in there):
            yield f'"{quote}"'


def _absent_numbers(one: Facts, there: Sequence[MessageText], at: datetime) -> Iterator[str]:
    known = [quantity for each in there for quantity in each.quantities]
    for quantity in one.quantities:
        if quantity.value in ("0", "1") and quantity.unit in (None, "x"):
            continue
        if not _is_counted(quantity, known, there) and not _is_reckoned_year(quantity, there, at):
            yield " ".join(filter(None, (quantity.bound, quantity.value, quantity.unit)))


def _is_counted(quantity: Quantity, known: Sequence[Quantity], there: Sequence[MessageText]) -> bool:
    same = [each for each in known if each.value.lstrip("-") == quantity.value.lstrip("-")]
    if same:
        return any(_agree(each.unit, quantity.unit) and _agree(each.bound, quantity.bound) for each in same)
    # A number within a version, a date or a name.
    digits = re.compile(rf"(?<![\d.,]){re.escape(quantity.value)}(?![\d]|[.,]\d)")
    return any(digits.search(each.folded) for each in there)


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _is_reckoned_year(quantity: Quantity, there: Sequence[MessageText], at: datetime) -> bool:
    is_year = quantity.unit is None and re.fullmatch(r"(?:19|20)\d\d", quantity.value) is not None
    return is_year and abs(int(quantity.value) - at.year) <= _YEARS and _is_relative(there)


def _absent_moments(one: Facts, there: Sequence[MessageText], at: datetime) -> Iterator[str]:
    known = frozenset[str]().union(*(each.moments for each in there))
    for moment in sorted(one.moments - known):
        if not _is_known_moment(moment, known, there, at):
            yield moment


def _is_known_moment(moment: str, known: frozenset[str], there: Sequence[MessageText], at: datetime) -> bool:
    if clock := _CLOCK.match(moment):
        hours = {clock[1].lstrip("0") or "0", str(int(clock[1]) % 12)}
        values = {quantity.value for each in there for quantity in each.quantities}
        return clock[2] == "00" and bool(hours & values)
    parts = _date(moment)
    if parts is None:
        # Daily or in the morning can be said in many ways; a day of the week cannot.
        return (moment not in _WEEKDAYS and f"{moment}s" not in _WEEKDAYS and moment in cues.CALENDAR) or _is_relative(
            there
        )
    if _is_relative(there) and (parts[0] is None or abs(parts[0] - at.year) <= _YEARS):
        return True
    return any(_is_same_date(parts, other, at) for other in map(_date, known) if other is not None)


def _date(moment: str) -> tuple[int | None, int, int | None] | None:
    """Return year, month and day of a moment that is a date."""
    found = _ISO.match(moment) or _WORDY.fullmatch(moment)
    if found is None:
        return None
    year, month, day = found.groups()
    return int(year) if year else None, int(month), int(day) if day else None


def _is_same_date(
    one: tuple[int | None, int, int | None], other: tuple[int | None, int, int | None], at: datetime
) -> bool:
    """Return True if the evidence has a date, possibly without the year that a statement adds."""
    (year, month, day), (other_year, other_month, other_day) = one, other
    if month != other_month or (day is not None and day != other_day):
        return False
    if year is None or year == other_year:
        return True
    return other_year is None and abs(year - at.year) <= _YEARS


def _is_relative(there: Iterable[MessageText]) -> bool:
    return any(each.plain & _RELATIVE_WORDS for each in there)
