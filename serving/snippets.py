"""Which sentence of a chunk is quoted: the one nearest to the query. Pure."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from knowledge.stems import fold, stemmer, stop_words
from serving.sentences import sentences

LONGEST_SNIPPET = 300
"""characters; of a longer sentence the part is quoted that says most about the query"""
_LEAD = 60
"""characters before the first word of the query in such a part"""
_SIMILAR = 0.25
"""share of the query's triples of characters from which on a sentence without any of its words counts as near"""

Span = tuple[int, int]
"""characters from 0, and one past the last"""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
"""scripts that are written without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean"""
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+|[{_UNSPACED}]+")
_PAIRED = re.compile(rf"[{_UNSPACED}]")


def snippets(query: str, texts: Sequence[str], headings: Sequence[Sequence[str]], language: str) -> list[Span]:
    """The spans to quote, one of each text.

    A sentence counts by the words of the query that are in it, in whatever inflection; the rarer a word is in the
    sentences of all these texts, the more. Where no word is (a passage can be found by its meaning alone), the
    sentence that shares most triples of characters with the query is taken, else the first one. A heading is only
    quoted where there is nothing else.

    Args:
        query: as typed.
        texts: of the chunks that were found.
        headings: above each of them; a sentence that only repeats one of them is a heading.
        language: of the stemmer, as `search.language`.

    Returns:
        Spans within each text, not empty unless the text is, without white space at their ends.
    """
    known = _Query(query, language)
    candidates = [_candidates(text, above) for text, above in zip(texts, headings, strict=True)]
    quoted = [text[start:end] for text, spans in zip(texts, candidates, strict=True) for start, end in spans]
    weights = known.weights(quoted)
    return [known.nearest(text, spans, weights) for text, spans in zip(texts, candidates, strict=True)]


def _candidates(text: str, headings: Iterable[str]) -> list[Span]:
    """Sentences that may be quoted."""
    found = sentences(text)
    above = {" ".join(heading.split()) for heading in headings}
    telling = [
        each
        for each in found
        if not each.heading and " ".join(text[each.start : each.end].strip("#").split()) not in above
    ]
    spans = [(each.start, each.end) for each in telling or found]
    # A text without a single letter or digit is quoted as it stands.
    return spans or [(len(text) - len(text.lstrip()), len(text.rstrip()) or len(text))]


class _Query:
    """What is looked for."""

    def __init__(self, query: str, language: str) -> None:
        self._stem = stemmer(language)
        self._stop = stop_words(language)
        words = [word for word, _ in self._words(query)]
        self._terms = {self._stem([word])[0] for word in words if word not in self._stop} or set(self._stem(words))
        self._triples = _triples(query)

    def weights(self, quoted: Sequence[str]) -> dict[str, float]:
        """What each term counts, by how few of the sentences hold it."""
        holding = Counter(term for text in quoted for term in {term for term, _ in self._found(text)})
        return {term: math.log(1 + (len(quoted) + 1) / (holding[term] + 0.5)) for term in self._terms}

    def nearest(self, text: str, spans: Sequence[Span], weights: dict[str, float]) -> Span:
        """The best of the spans, cut to what can be quoted."""

        def value(span: Span) -> tuple[float, float, int]:
            quoted = text[span[0] : span[1]]
            terms = {term for term, _ in self._found(quoted)}
            return (sum(weights[term] for term in sorted(terms)), self._similarity(quoted), -span[0])

        start, end = max(spans, key=value)
        if end - start <= LONGEST_SNIPPET:
            return start, end
        return _cut(text, (start, end), [(place, weights[term]) for term, place in self._found(text[start:end])])

    def _similarity(self, text: str) -> float:
        shared = len(self._triples & (triples := _triples(text)))
        if not triples or shared < _SIMILAR * len(self._triples):
            return 0.0
        return shared / math.sqrt(len(triples))

    def _found(self, text: str) -> Iterator[tuple[str, int]]:
        """Terms of the query that stand in a text, and where."""
        words = list(self._words(text))
        for term, (_, place) in zip(self._stem([word for word, _ in words]), words, strict=True):
            if term in self._terms:
                yield term, place

    def _words(self, text: str) -> Iterator[tuple[str, int]]:
        """Folded words, and pairs of characters where there are no spaces, with their places."""
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
    """The part of a long sentence in which most of the query stands, from word to word.

    Args:
        text: that the span is of.
        span: of the sentence.
        places: characters from the start of the sentence at which a term stands, and what the term counts; in order.
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
