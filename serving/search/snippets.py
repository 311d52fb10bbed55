"""Snippet selection: the sentence of a chunk nearest to the query. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from parquetry.language.stems import fold, stemmer, stop_words
from parquetry.lazy_patterns import lazy_pattern
from parquetry.serving.search.sentences import sentences
from parquetry.serving.search.tables import Span, tables

LONGEST_SNIPPET = 300
"""characters; a longer sentence is cut to its part with the most of the query"""
LONGEST_ROW = 1000
"""characters; a table row up to this length is quoted whole, because its cells belong to columns"""
_LEAD = 60
"""characters before the first query word in such a part"""
_SIMILAR = 0.25
"""minimum share of the query's character trigrams for a sentence without query words to count as near"""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
"""scripts written without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean"""
_WORD = lazy_pattern(rf"[^\W_{_UNSPACED}]+|[{_UNSPACED}]+")
_PAIRED = lazy_pattern(rf"[{_UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Quoted part of a text."""

    span: Span
    header: Span | None = None
    """column names of the table if a row is quoted"""


def snippets(query: str, texts: Sequence[str], headings: Sequence[Sequence[str]], language: str) -> list[Quotation]:
    """Return the spans to quote, one for each text.

    A sentence scores by the query words in it, in any inflection; words that are rarer in the sentences of all these
    texts weigh more. Without any such word (a passage can be found by its meaning alone) the sentence that shares the
    most character trigrams with the query is taken, else the first one. A heading is quoted only if there is nothing
    else. A table row is scored together with its column names, which are not a sentence of their own.

    Args:
        query: query as typed.
        texts: texts of the chunks found.
        headings: headings above each chunk; a sentence that only repeats one of them counts as a heading.
        language: stemmer language, as in `search.language`.

    Returns:
        Spans within each text, without white space at their ends; empty only for an empty text.
    """
    known = _Query(query, language)
    candidates = [_candidates(text, above) for text, above in zip(texts, headings, strict=True)]
    terms = [[known.terms(text, each) for each in found] for text, found in zip(texts, candidates, strict=True)]
    weights = known.weights([each for found in terms for each in found])
    return [known.nearest(*each, weights) for each in zip(texts, candidates, terms, strict=True)]


def _candidates(text: str, headings: Iterable[str]) -> list[Quotation]:
    """Return the sentences that may be quoted."""
    found, known = sentences(text), tables(text)
    above = {" ".join(heading.split()) for heading in headings}
    names = {table.header[0] for table in known}
    telling = [
        each
        for each in found
        if not each.heading
        and each.start not in names
        and " ".join(text[each.start : each.end].strip("#").split()) not in above
    ]
    header_of = {row[0]: table.header for table in known for row in table.rows}
    quotations = [Quotation((each.start, each.end), header_of.get(each.start)) for each in telling or found]
    # Without a single letter or digit, the whole text is quoted.
    return quotations or [Quotation((len(text) - len(text.lstrip()), len(text.rstrip()) or len(text)))]


class _Query:
    """A query prepared for matching."""

    def __init__(self, query: str, language: str) -> None:
        self._stem = stemmer(language)
        self._stop = stop_words(language)
        words = [word for word, _ in self._words(query)]
        self._terms = {self._stem([word])[0] for word in words if word not in self._stop} or set(self._stem(words))
        self._triples = _triples(query)
        self._in_names: dict[str, set[str]] = {}

    def terms(self, text: str, quotation: Quotation) -> set[str]:
        """Return the terms in a quotation or in the column names above it."""
        own = {term for term, _ in self._found(text[slice(*quotation.span)])}
        if quotation.header is None:
            return own
        names = text[slice(*quotation.header)][:LONGEST_ROW]
        if names not in self._in_names:
            self._in_names[names] = {term for term, _ in self._found(names)}
        return own | self._in_names[names]

    def weights(self, quoted: Sequence[set[str]]) -> dict[str, float]:
        """Return the weight of each term; rarer in the quotations is heavier."""
        holding = Counter(term for terms in quoted for term in terms)
        return {term: math.log(1 + (len(quoted) + 1) / (holding[term] + 0.5)) for term in self._terms}

    def nearest(
        self, text: str, candidates: Sequence[Quotation], terms: Sequence[set[str]], weights: dict[str, float]
    ) -> Quotation:
        """Return the best candidate, cut to the maximum length."""

        def value(number: int) -> tuple[float, float, int]:
            told = sum(weights[term] for term in sorted(terms[number]))
            return told, self._similarity(text[slice(*candidates[number].span)]), -candidates[number].span[0]

        best = candidates[max(range(len(candidates)), key=value)]
        start, end = best.span
        if end - start <= (LONGEST_SNIPPET if best.header is None else LONGEST_ROW):
            return best
        places = [(place, weights[term]) for term, place in self._found(text[start:end])]
        return Quotation(_cut(text, best.span, places), best.header)

    def _similarity(self, text: str) -> float:
        shared = len(self._triples & (triples := _triples(text)))
        if not triples or shared < _SIMILAR * len(self._triples):
            return 0.0
        return shared / math.sqrt(len(triples))

    def _found(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield the query's terms in a text and their positions."""
        words = list(self._words(text))
        for term, (_, place) in zip(self._stem([word for word, _ in words]), words, strict=True):
            if term in self._terms:
                yield term, place

    def _words(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield folded words, and character bigrams in scripts without spaces, with their positions."""
        for found in _WORD.finditer(text):
            if not _PAIRED.match(found[0]):
                yield fold(found[0]), found.start()
                continue
            for offset in range(max(1, len(found[0]) - 1)):
                yield found[0][offset : offset + 2], found.start() + offset


def _triples(text: str) -> set[str]:
    folded = " ".join(fold(text).split())
    return {folded[place : place + 3] for place in range(len(folded) - 2)}


def _cut(text: str, span: Span, places: Sequence[tuple[int, float]]) -> Span:
    """Cut a long sentence, at word boundaries, to the part with the most of the query.

    Args:
        text: text that contains the span.
        span: span of the sentence.
        places: offset of each term from the start of the sentence, in characters, and its weight; in order.
    """
    first, end = span

    sums = [0.0, *accumulate(weight for _, weight in places)]
    ends = [bisect_left(places, (place + LONGEST_SNIPPET - _LEAD, 0.0)) for place, _ in places]
    worth = [(sums[stop] - sums[number], -number) for number, stop in enumerate(ends)]
    best = places[-max(worth)[1]][0] if worth else 0
    start = min(first + max(0, best - _LEAD), end - LONGEST_SNIPPET)
    stop = start + LONGEST_SNIPPET
    if start > first and (gap := re.compile(r"\s+").search(text, start - 1, start + _LEAD)):
        start = gap.end()
    if stop < end and (gaps := list(re.finditer(r"\s", text[stop - _LEAD : stop + 1]))):
        stop = stop - _LEAD + gaps[-1].start()
    cut = text[start:stop]
    return start + len(cut) - len(cut.lstrip()), start + len(cut.rstrip())
