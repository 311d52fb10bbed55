"""A corpus with judged questions, as its searches score it: every chunk on both sides, its words and their order."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.embed.base import Vectors
from parquetry.language.stems import stop_words
from parquetry.ranking.relevance_words import tokens
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.database import rows
from parquetry.storage.index.ranking import K1, B
from parquetry.storage.index.tokens import CHUNK_TOKENS
from parquetry.storage.index.words import stems_of

LANGUAGE = "english"
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
"""places of chunks in a corpus, best first where they are ranked"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, and how good an order of chunks is for it."""

    text: str
    measure: Callable[[Sequence[Mapping[str, Any]]], float]
    """quality of ranked chunks, 0 to 1; a chunk has `filename`, `page` and `text`"""
    grade: Callable[[Mapping[str, Any]], float]
    """relevance of a chunk, 0 or less for an irrelevant one"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a search asks it."""

    weights: Mapping[str, float]
    """stem -> its weight on the keyword side"""
    stems: Sequence[str]
    """stems in the order of the question, without stop words"""
    vector: Vectors
    """float32[dimension], L2-normalised"""
    cosines: Floats
    """float64[chunks]"""
    bm25: Floats
    """float64[chunks]: scores of the keyword side, with identities; 0 for chunks without a word of the question"""
    identities: Floats
    """float64[chunks]: share of the identities in them"""


class Corpus:
    """The chunks of a corpus, and what its searches say about them.

    Args:
        name: what results call it.
        reader: reader of the corpus.
        questions: the questions.
    """

    def __init__(self, name: str, reader: Reader, questions: Sequence[Judged]) -> None:
        self.name = name
        self.questions = questions
        with closing(reader.index.session()) as session:
            self.chunks = rows(
                session,
                f"""SELECT c.chunk AS number, d.filename, c.page, c.text, c.chunk_index, c.vector_1 AS vector,
                    coalesce(c.headings, []) AS headings, {CHUNK_TOKENS} AS words
                FROM parts.chunks AS c JOIN parts.documents AS d USING (doc) ORDER BY d.document_id, c.chunk_index""",
            )
        self._numbers = np.array([chunk["number"] for chunk in self.chunks])
        self.vectors = _normalised(np.array([chunk.pop("vector") for chunk in self.chunks], np.float32))
        self._stops = stop_words(LANGUAGE)
        words = [chunk.pop("words") for chunk in self.chunks]
        self.lengths = np.array([len(each) for each in words], np.float64)
        self.stems = [self._stemmed(each) for each in words]
        """stems of each chunk in the order of its text, headings first, without stop words"""
        self.counts = [Counter(stems) for stems in self.stems]
        self._postings = self._count()
        self.headings = [set(self._stemmed(tokens(" ".join(chunk["headings"])))) for chunk in self.chunks]
        self.documents, self.document_vectors = self._documents()
        self.asked = [self._ask(reader, question.text) for question in questions]

    def rarity(self, stem: str) -> float:
        """Return the inverse document frequency of a stem."""
        holding = len(self._postings[stem][0]) if stem in self._postings else 0
        return math.log(1 + (len(self.chunks) - holding + 0.5) / (holding + 0.5))

    def scores(self, weights: Mapping[str, float]) -> Floats:
        """Return BM25 of each chunk, without identities.

        Args:
            weights: stem -> its weight in a query, rarity not included.
        """
        found = np.zeros(len(self.chunks))
        norms = K1 * (1 - B + B * self.lengths / self.lengths.mean())
        for stem, weight in weights.items():
            if stem in self._postings:
                places, times = self._postings[stem]
                found[places] += weight * self.rarity(stem) * times * (K1 + 1) / (times + norms[places])
        return found

    def measure(self, orders: Sequence[Places]) -> float:
        """Return the mean quality of one order of chunks per question."""
        return float(
            np.mean([
                question.measure([self.chunks[place] for place in order])
                for question, order in zip(self.questions, orders, strict=True)
            ])
        )  # fmt: skip

    def _stemmed(self, words: Sequence[str]) -> list[str]:
        kept = [word for word in words if word not in self._stops]
        return stems_of(kept, LANGUAGE) if kept else []

    def _count(self) -> Mapping[str, tuple[Places, Floats]]:
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, counts in enumerate(self.counts):
            for stem, times in counts.items():
                found[stem].append((place, times))
        return {
            stem: (np.array([place for place, _ in held]), np.array([times for _, times in held], np.float64))
            for stem, held in found.items()
        }

    def _documents(self) -> tuple[Places, Vectors]:
        """Return the document of each chunk, and the mean vector of each document."""
        known: dict[str, int] = {}
        documents = np.array([known.setdefault(chunk["filename"], len(known)) for chunk in self.chunks])
        sums = np.zeros((len(known), self.vectors.shape[1]), np.float32)
        np.add.at(sums, documents, self.vectors)
        return documents, _normalised(sums)

    def _ask(self, reader: Reader, text: str) -> Asked:
        with reader.searching(SearchRequest(text, mode="hybrid")) as (searcher, vectors, _):
            scored = searcher.scored(text, vectors, "hybrid")
            weights = dict(searcher.weights)
        (vector,) = vectors.values()
        near, words = scored["vector"][0], scored["text"][0]
        identities = words.identities if words.identities is not None else np.zeros(0)
        return Asked(
            weights,
            [stem for stem in self._stemmed(tokens(text)) if stem in weights],
            _normalised(np.asarray(vector, np.float32)[None])[0],
            self._by_place(near.chunks, near.scores),
            self._by_place(words.chunks, words.scores),
            self._by_place(words.chunks, identities),
        )

    def _by_place(self, numbers: npt.NDArray[Any], scores: Floats) -> Floats:
        by_number = np.zeros(int(self._numbers.max()) + 1)
        by_number[numbers] = scores
        found: Floats = by_number[self._numbers]
        return found


def _normalised(vectors: Vectors) -> Vectors:
    shorter: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return shorter
