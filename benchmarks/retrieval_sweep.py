"""Rankings of a test collection under settings that the search index does not offer, from its tokens and vectors.

The scores of each side are stored as lists, so that trying another fusion needs no search.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from parquetry.embed.base import Vectors
from parquetry.embed.registry import open_embedder
from parquetry.language.stems import stop_words
from parquetry.ranking.evaluation import Dataset, Measures, measure
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.database import tuples
from parquetry.storage.index.identities import identity_contents, weight_of
from parquetry.storage.index.ranking import IDENTITY_SHARE, K1, K3, B
from parquetry.storage.index.tokens import CHUNK_HEADINGS, CHUNK_TOKENS, HEADING_EXTRA, tokenised
from parquetry.storage.index.words import stems_of

DEEPEST = 1000
"""maximum number of chunks in a list"""
LANGUAGE = "english"
Ranked = Sequence[tuple[int, float]]
"""chunk numbers with their scores, best first"""
Fusion = Callable[[Ranked, Ranked], Sequence[tuple[int, float]]]
Numbers = npt.NDArray[np.integer]
Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Keywords:
    """Keyword search settings; the defaults are those of the search index."""

    stems: bool = True
    stop_words: bool = False
    """True to include the query's stop words"""
    wholes: bool = True
    """True to index identifiers whole in addition to their parts"""
    k1: float = K1
    b: float = B
    k3: float = K3
    """saturation of a term's frequency in the query; 0 counts each term once"""
    headings: int = HEADING_EXTRA
    """times that a word of the headings above a chunk counts besides"""
    identity: float = IDENTITY_SHARE
    """share of the score of a document's identity; 0 ranks chunks by their own words alone"""


@dataclass(frozen=True, slots=True)
class _Postings:
    chunks: Mapping[str, tuple[Numbers, Floats]]
    """term -> numbers of the chunks that contain it, and its frequency in each"""
    lengths: Floats
    """length of each chunk in tokens"""
    identities: Mapping[str, tuple[Numbers, Floats]]
    """term -> numbers of the chunks whose document has it in its identity, and its weight there"""


class Collection:
    """A test collection as stored in a search index.

    Args:
        reader: reader of the corpus.
        dataset: the indexed test collection.
        settings: settings of the corpus.
    """

    def __init__(self, reader: Reader, dataset: Dataset, settings: Settings) -> None:
        self.dataset = dataset
        with closing(reader.index.session()) as session:
            found = tuples(
                session,
                f"""SELECT d.filename, c.vector_1, {CHUNK_TOKENS}, tokens({CHUNK_HEADINGS}) FROM parts.chunks AS c
                JOIN parts.documents AS d USING (doc) ORDER BY d.document_id, c.chunk_index""",
            )
            identities = tuples(session, tokenised(f"({identity_contents('parts.documents')})"))
            numbers = tuples(session, "SELECT number, filename FROM parts.documents")
            queries = list(dataset.queries.values())
            self._asked = [tuples(session, "SELECT tokens($1)", [query])[0][0] for query in queries]
        self._documents = [dataset.documents[int(PurePosixPath(name).stem)].id for name, *_ in found]
        named = {number: dataset.documents[int(PurePosixPath(name).stem)].id for number, name in numbers}
        self._identities = [(named[number], field, tokens) for number, field, tokens in identities]
        self._tokens: list[list[str]] = [tokens for *_, tokens, _ in found]
        self._headings: list[list[str]] = [headings for *_, headings in found]
        self.vectors: Vectors = np.array([vector for _, vector, *_ in found], np.float32)
        self.embedder = open_embedder(settings.corpus.embedder, settings.embedding, settings.hub)
        self.query_vectors: Vectors = np.asarray(self.embedder.embed_queries(queries), np.float32)
        self._stops = stop_words(LANGUAGE)
        self._postings = cache(self._count)

    @property
    def chunks(self) -> int:
        return len(self._documents)

    def by_vectors(self, vectors: Vectors | None = None, queries: Vectors | None = None) -> list[Ranked]:
        """Return one list per query, by cosine similarity.

        Args:
            vectors: vectors of the same chunks, to use instead of the stored ones.
            queries: vectors of the same queries, to use instead of the embedder's.
        """
        chunks = self.vectors if vectors is None else vectors
        asked = self.query_vectors if queries is None else queries
        return [best(similar) for similar in asked @ chunks.T]

    def by_keywords(self, keywords: Keywords) -> list[Ranked]:
        """Return one list per query, by BM25 and the identities of documents."""
        postings = self._postings(keywords.stems, keywords.wholes, keywords.headings)
        found = []
        for words in self._asked:
            scores, identities = np.zeros(self.chunks), np.zeros(self.chunks)
            for term, times in self._terms(words, keywords).items():
                _add_bm25(scores, identities, postings, term, times, keywords)
            found.append(best(np.where(scores > 0, scores + keywords.identity * identities, 0.0), above=0.0))
        return found

    def measure(self, lists: Sequence[Sequence[tuple[int, float]]]) -> Measures:
        """Return the metrics of one list of chunks per query, each document at the rank of its best chunk."""
        rankings = {
            query: list(dict.fromkeys(self._documents[chunk] for chunk, _ in ranked))
            for query, ranked in zip(self.dataset.queries, lists, strict=True)
        }
        return measure(rankings, self.dataset.judgements)

    def fused(self, fusion: Fusion, vector: Sequence[Ranked], text: Sequence[Ranked], depth: int) -> Measures:
        """Return the metrics after fusing both lists of each query, cut at `depth`."""
        return self.measure([fusion(v[:depth], t[:depth]) for v, t in zip(vector, text, strict=True)])

    def _terms(self, words: Sequence[str], keywords: Keywords) -> Counter[str]:
        words = [word for word in words if keywords.wholes or word.isalnum()]
        kept = words if keywords.stop_words else [word for word in words if word not in self._stops] or words
        return Counter(stems_of(kept, LANGUAGE) if keywords.stems else kept)

    def _count(self, stems: bool, wholes: bool, extra: int) -> _Postings:
        chunks: dict[str, list[int]] = defaultdict(list)
        times: dict[str, list[int]] = defaultdict(list)
        lengths = np.zeros(self.chunks)
        for number, (words, headings) in enumerate(zip(self._tokens, self._headings, strict=True)):
            terms, above = (self._terms_of(each, stems, wholes) for each in (words, headings))
            lengths[number] = len(terms)
            for term, count in Counter([*terms, *(above * extra)]).items():
                chunks[term].append(number)
                times[term].append(count)
        return _Postings(_as_arrays(chunks, times), lengths, self._weigh_identities(stems, wholes))

    @staticmethod
    def _terms_of(words: Sequence[str], stems: bool, wholes: bool) -> list[str]:
        kept = [word for word in words if wholes or word.isalnum()]
        return stems_of(kept, LANGUAGE) if stems else kept

    def _weigh_identities(self, stems: bool, wholes: bool) -> Mapping[str, tuple[Numbers, Floats]]:
        found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for document, field, words in self._identities:
            telling = [word for word in words if word not in self._stops]
            for term, count in Counter(self._terms_of(telling, stems, wholes)).items():
                found[document][term][field] = count
        chunks: dict[str, list[int]] = defaultdict(list)
        weights: dict[str, list[float]] = defaultdict(list)
        for number, document in enumerate(self._documents):
            for term, times in found[document].items():
                chunks[term].append(number)
                weights[term].append(weight_of(times))
        return _as_arrays(chunks, weights)


def _as_arrays(
    chunks: Mapping[str, list[int]], values: Mapping[str, Sequence[float]]
) -> dict[str, tuple[Numbers, Floats]]:
    return {term: (np.array(chunks[term]), np.array(values[term], np.float64)) for term in chunks}


def _add_bm25(
    scores: Floats, identities: Floats, postings: _Postings, term: str, times: int, keywords: Keywords
) -> None:
    """Add the Okapi BM25 score of one query term (Robertson and Zaragoza 2009), and its part of the identities."""
    chunks, frequency = postings.chunks.get(term, (np.empty(0, np.int64), np.empty(0)))
    rarity = math.log(1 + (len(scores) - len(chunks) + 0.5) / (len(chunks) + 0.5))
    asked = times * (keywords.k3 + 1) / (times + keywords.k3)
    if term in postings.identities:
        held, weights = postings.identities[term]
        identities[held] += asked * rarity * weights
    length = 1 - keywords.b + keywords.b * postings.lengths[chunks] / postings.lengths.mean()
    scores[chunks] += asked * rarity * frequency * (keywords.k1 + 1) / (frequency + keywords.k1 * length)


def best(scores: Floats, above: float = -math.inf, depth: int = DEEPEST) -> Ranked:
    """Return the places of the best `depth` scores above a bound, with their scores; ties are broken by position."""
    order = np.argsort(-scores, kind="stable")[:depth]
    return [(int(place), float(scores[place])) for place in order if scores[place] > above]


def without_common_part(vectors: Vectors, common: Vectors) -> Vectors:
    """Subtract a common vector from all vectors, and L2-normalise them again."""
    apart = vectors - common
    shorter: Vectors = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
    return shorter


def without_stop_words(query: str) -> str:
    """Remove stop words from a query; keep the whole query if nothing else is left."""
    stops = stop_words(LANGUAGE)
    kept = [word for word in query.split() if word.strip(".,:;?!()'\"").lower() not in stops]
    return " ".join(kept) or query
