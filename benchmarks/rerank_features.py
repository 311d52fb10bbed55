"""Features by which the candidates of a hybrid search could be ranked again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.rerank_corpus import Asked, Corpus, Floats, Places
from benchmarks.retrieval_sweep import best
from parquetry.ranking.fusion import VECTOR_WEIGHT, convex

DEPTH = 100
"""chunks on the list of each side"""
NEAR = 8
"""words between two of a question that count as near each other"""
MOST_TERMS = 20
"""words that a question is expanded by"""
SATURATION = 1.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunks on the lists of both sides."""

    corpus: Corpus
    asked: Asked
    places: Places
    """best first"""
    fused: Floats
    """score of the search, 0 to 1"""
    vector: Floats
    """cosine, 0 for the last of the list and 1 for the best; 0 for chunks that are not on it"""
    text: Floats
    """the same of the keyword side"""


def candidates(corpus: Corpus, asked: Asked, cosines: Floats | None = None, bm25: Floats | None = None) -> Candidates:
    """Return what a hybrid search ranks.

    Args:
        corpus: the corpus.
        asked: the question.
        cosines: other scores of all chunks on the vector side.
        bm25: other scores of all chunks on the keyword side.
    """
    near = best(asked.cosines if cosines is None else cosines, depth=DEPTH)
    worded = best(asked.bm25 if bm25 is None else bm25, above=0.0, depth=DEPTH)
    fused = convex(near, worded, VECTOR_WEIGHT)
    places = np.array([place for place, _ in fused])
    # A fusion with nothing is the list alone, between 0 and 1.
    parts = [dict(convex(near, [], 1.0)), dict(convex([], worded, 0.0))]
    vector, text = (np.array([part.get(place, 0.0) for place, _ in fused]) for part in parts)
    return Candidates(corpus, asked, places, np.array([score for _, score in fused]), vector, text)


def ranked(found: Candidates, scores: Floats) -> Places:
    """Return the places of candidates by other scores, best first; ties in the order of the search."""
    return found.places[np.argsort(-scores, kind="stable")]


# --- features


def near_the_best(found: Candidates, first: int = 5) -> Floats:
    """Return the similarity to the mean vector of the first results (Rocchio 1971)."""
    vectors = found.corpus.vectors
    return (vectors[found.places] @ vectors[found.places[:first]].mean(axis=0)).astype(np.float64)


def expansion(found: Candidates, first: int = 10) -> Mapping[str, float]:
    """Return the words of the first results with their weights, which sum to 1 (RM3: Abdul-Jaleel and others 2004).

    Words that most chunks hold are kept out by their rarity, in place of a language model of the corpus.
    """
    told: dict[str, float] = defaultdict(float)
    for place, score in zip(found.places[:first], found.fused, strict=False):
        for stem, times in found.corpus.counts[place].items():
            told[stem] += score * times / found.corpus.lengths[place]
    worth = sorted(((weight * found.corpus.rarity(stem), stem) for stem, weight in told.items()), reverse=True)[
        :MOST_TERMS
    ]
    total = sum(weight for weight, _ in worth) or 1.0
    return {stem: weight / total for weight, stem in worth}


def expanded(found: Candidates) -> Floats:
    """Return BM25 in the words of the first results."""
    return found.corpus.scores(expansion(found))[found.places]


def coverage(found: Candidates) -> Floats:
    """Return the share of the question's weight that each chunk has a word of."""
    return np.array([_share(found.asked.weights, found.corpus.counts[place]) for place in found.places])


def headings(found: Candidates) -> Floats:
    """Return the share of the question's weight in the headings above each chunk."""
    return np.array([_share(found.asked.weights, found.corpus.headings[place]) for place in found.places])


def _share(weights: Mapping[str, float], held: Mapping[str, int] | set[str]) -> float:
    total = sum(weights.values())
    return sum(weight for stem, weight in weights.items() if stem in held) / total if total else 0.0


def bigrams(found: Candidates) -> Floats:
    """Return how much each chunk has of the question's pairs of neighbours (Metzler and Croft 2005, ordered)."""
    return _pairs(found, lambda apart: apart == 1)


def windows(found: Candidates) -> Floats:
    """Return the same of pairs in any order, near each other (Metzler and Croft 2005, unordered)."""
    return _pairs(found, lambda apart: 0 < abs(apart) <= NEAR)


def _pairs(found: Candidates, match: Callable[[int], bool]) -> Floats:
    pairs = {pair for pair in pairwise(found.asked.stems) if pair[0] != pair[1]}
    worth = {pair: min(found.asked.weights[stem] for stem in pair) for pair in pairs}
    scores = []
    for place in found.places:
        at = _positions(found.corpus.stems[place], found.asked.weights)
        score = 0.0
        for one, other in pairs:
            times = sum(any(match(right - left) for right in at[other]) for left in at[one]) if other in at else 0
            score += worth[one, other] * times / (times + SATURATION)
        scores.append(score)
    return np.array(scores)


def proximity(found: Candidates) -> Floats:
    """Return the nearness of neighbouring words of the question in each chunk (Büttcher and others 2006)."""
    scores = []
    for place in found.places:
        at = _positions(found.corpus.stems[place], found.asked.weights)
        line = sorted((position, stem) for stem, positions in at.items() for position in positions)
        near: Counter[str] = Counter()
        for (left, one), (right, other) in pairwise(line):
            if one != other:
                near[one] += found.asked.weights[other] / (right - left) ** 2
                near[other] += found.asked.weights[one] / (right - left) ** 2
        norm = SATURATION * (0.5 + 0.5 * found.corpus.lengths[place] / found.corpus.lengths.mean())
        scores.append(sum(found.asked.weights[stem] * value / (value + norm) for stem, value in near.items()))
    return np.array(scores)


def _positions(stems: Sequence[str], weights: Mapping[str, float]) -> Mapping[str, list[int]]:
    at: dict[str, list[int]] = defaultdict(list)
    for position, stem in enumerate(stems):
        if stem in weights:
            at[stem].append(position)
    return at


def opening(found: Candidates) -> Floats:
    """Return how near the beginning of its document each chunk is; 1 for the first."""
    return np.array([1 / (1 + found.corpus.chunks[place]["chunk_index"]) for place in found.places])


def length(found: Candidates) -> Floats:
    """Return the logarithm of the length of each chunk."""
    return np.log1p(found.corpus.lengths[found.places])


def document_vector(found: Candidates) -> Floats:
    """Return the cosine of each chunk's document, whose vector is the mean of its chunks'."""
    vectors = found.corpus.document_vectors[found.corpus.documents[found.places]]
    return (vectors @ found.asked.vector).astype(np.float64)


Feature = Callable[[Candidates], Floats]
FEATURES: Mapping[str, Feature] = {
    "vector list": lambda found: found.vector,
    "keyword list": lambda found: found.text,
    "cosine of all": lambda found: found.asked.cosines[found.places],
    "BM25 of all": lambda found: found.asked.bm25[found.places],
    "near the best": near_the_best,
    "expanded": expanded,
    "coverage": coverage,
    "identity": lambda found: found.asked.identities[found.places],
    "headings": headings,
    "bigrams": bigrams,
    "windows": windows,
    "proximity": proximity,
    "opening": opening,
    "length": length,
    "document vector": document_vector,
}


def spread(values: Floats) -> Floats:
    """Return values between the least, 0, and the greatest, 1; all 0 if they are equal."""
    low, high = float(values.min()), float(values.max())
    scaled: Floats = (values - low) / (high - low) if high > low else np.zeros(len(values))
    return scaled
