"""The words of a query, and of the turns before it, with their weights on the keyword side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from parquetry.language.stems import stop_words
from parquetry.ranking.relevance_words import tokens
from parquetry.storage.database import Connection, tuples
from parquetry.storage.index.ranking import K3
from parquetry.storage.index.words import stems_of

CONTEXT_SHARE = 0.3
"""share of a query's context, such as earlier turns, in the query's vector, and in its keywords at most"""

_ALIKE = re.compile("[\0-\u036f\u0400-\u052f]*")
"""text of Latin and Cyrillic letters, in which Python finds the same tokens as the index; a statement of SQL takes a
millisecond longer, and with other letters than ASCII seven"""


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Words that a query asks for."""

    own: Mapping[str, float]
    """stems of the query with their weights"""
    earlier: Mapping[str, float]
    """stems of its context with their weights"""
    ignored: tuple[str, ...]
    """stop words of the query"""


@dataclass(frozen=True, slots=True)
class _Stems:
    weights: Mapping[str, float]
    ignored: tuple[str, ...]
    has_subject: bool
    """True if there is any but a stop word"""


def words_of(connection: Connection, language: str, query: str, context: str | None) -> QueryWords:
    """Return the stems of a query and those of its context.

    Args:
        connection: connection with an index as current database.
        language: language of the index.
        query: query as typed.
        context: text before it; None or empty for none.
    """
    own = _stems(connection, language, query)
    if not context:
        return QueryWords(own.weights, {}, own.ignored)
    earlier = _stems(connection, language, context)
    if not own.has_subject and earlier.has_subject:
        # `And what about that?` asks about what was said before.
        return QueryWords(earlier.weights, {}, own.ignored)
    # However long the context is, and however often it repeats itself.
    size = sum(own.weights.values()) / max(1.0, sum(earlier.weights.values()))
    share = CONTEXT_SHARE / (1 - CONTEXT_SHARE) * min(1.0, size)
    return QueryWords(own.weights, {stem: share * weight for stem, weight in earlier.weights.items()}, own.ignored)


def _stems(connection: Connection, language: str, text: str) -> _Stems:
    words = Counter(_tokens(connection, text))
    telling = set(words) - stop_words(language)
    asked = sorted(telling) or sorted(words)
    times: Counter[str] = Counter()
    for word, stem in zip(asked, stems_of(asked, language), strict=True):
        times[stem] += words[word]
    weights = {stem: count * (K3 + 1) / (count + K3) for stem, count in times.items()}
    return _Stems(weights, tuple(sorted(set(words).difference(asked))), bool(telling))


def _tokens(connection: Connection, text: str) -> list[str]:
    """Return the tokens of a query as the index finds them."""
    if _ALIKE.fullmatch(text):
        return tokens(text)
    return [word for (word,) in tuples(connection, "SELECT unnest(tokens($1))", [text])]
