"""A generated corpus of many owners, and a brute-force search over it."""

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from parquetry.model import Access
from parquetry.ranking.fusion import convex
from parquetry.storage.index.ranking import IDENTITY_SHARE, K1, B
from parquetry.storage.search.filters import Caller
from parquetry.storage.search.searcher import Searcher
from tests.records import THEN
from tests.storage.shelf import EMBEDDER

USERS = [f"user-{number}" for number in range(50)]
ORGANIZATIONS = [f"org-{number}" for number in range(10)]
NAMESPACES, SOURCES, TAGS = ("default", "hr", "it"), ("docs", "wiki"), ("red", "new", "old", "big")
MEDIA_TYPES = ("text/markdown", "application/pdf")
WORDS = [f"{first}{last}" for first in ("oak", "elm", "ash", "fir", "yew", "box") for last in "abcdefgh"]
DIMENSION = 4
HEADING = "heading"
"""heading that the shelf puts over every chunk"""
VOCABULARY = [*WORDS, HEADING]


@dataclass(frozen=True)
class Chunk:
    """A searchable chunk."""

    text: str
    path: str
    row: object
    vector: np.ndarray
    counts: list[int]
    """number of occurrences of each word of the vocabulary"""


class Crowd:
    """2,000 documents of one or two chunks, each private, shared or public."""

    def __init__(self, shelf, documents=2000, seed=5):
        self.shelf = shelf
        self.random = random.Random(seed)
        self.chunks = []
        for namespace in NAMESPACES:
            for source in SOURCES:
                count = documents // len(NAMESPACES) // len(SOURCES) + 1
                self.publish(min(count, documents - len(self.paths)), namespace, source, self.access)

    @property
    def paths(self):
        return {chunk.path for chunk in self.chunks}

    def access(self):
        kind = self.random.choice(("public", "organization", "organization", "individual", "individual"))
        tags = tuple(self.random.sample(TAGS, self.random.randint(0, 3)))
        if kind == "public":
            return Access(tags=tags)
        if kind == "organization":
            return Access(kind, org_id=self.random.choice(ORGANIZATIONS), tags=tags)
        return Access(kind, user_id=self.random.choice(USERS), tags=tags)

    def text(self):
        return " ".join(self.random.choices(WORDS, k=self.random.randint(2, 9)))

    def vectors(self, count):
        # Few distinct values, so that many chunks tie.
        return np.array([self.random.choices((-1, 0, 1, 2), k=DIMENSION) for _ in range(count)], np.float32)

    def publish(self, count, namespace, source, access):
        """Publish documents with random text, vectors and properties."""
        start = len(self.chunks)
        texts = {f"{start + i}/{self.random.choice('ab')}.md": self.texts() for i in range(count)}
        vectors = self.vectors(sum(map(len, texts.values())))
        written, run = self.shelf.write(texts, vectors=vectors, namespace=namespace, source=source)
        described = [replace(row, **self.properties(access())) for row in written]
        self.shelf.lake.publish(self.shelf.lake.snapshot(), described, run)
        rows = [row for row in described for _ in texts[row.path]]
        parts = [text for row in described for text in texts[row.path]]
        counts = [[text.split().count(word) for word in WORDS] + [1] for text in parts]
        self.chunks += [
            Chunk(text, row.path, row, vectors[i], counts[i])
            for i, (text, row) in enumerate(zip(parts, rows, strict=True))
        ]

    def texts(self):
        return [self.text() for _ in range(self.random.choice((1, 1, 2)))]

    def properties(self, access):
        return {
            "access": access,
            "media_type": self.random.choice(MEDIA_TYPES),
            "modified_at": THEN + timedelta(days=self.random.randint(0, 100)),
            "pages": self.random.randint(0, 20),
            "title": self.random.choice(("7", "12", "nine")),
            "metadata": {"author": {"name": self.random.choice("xyz")}},
        }

    def caller(self):
        """Return a random caller: sometimes the operator, else a user, a member, both or neither."""
        user, org = self.random.choice([*USERS, None]), self.random.choice([*ORGANIZATIONS, None])
        return self.random.choice(
            [None, Caller(user, org), Caller(user, org), Caller(user, org), Caller(user), Caller()]
        )

    def filters(self):
        """Return random filters, and the same as a function of a row."""
        day = THEN + timedelta(days=self.random.randint(0, 100))
        tags = tuple(self.random.sample(TAGS, 2))
        offers = {
            "namespaces": (("hr", "it"), lambda row: row.namespace in ("hr", "it")),
            "filename": ("*/a.md", lambda row: row.path.endswith("/a.md")),
            "tags": (tags, lambda row: set(tags) <= set(row.access.tags)),
            "any_tags": (tags, lambda row: bool(set(tags) & set(row.access.tags))),
            "media_type": (MEDIA_TYPES[0], lambda row: row.media_type == MEDIA_TYPES[0]),
            "source": ("wiki", lambda row: row.source == "wiki"),
            "since": (day, lambda row: row.modified_at >= day),
            "until": (day, lambda row: row.modified_at < day),
            "metadata": ((("author.name", "x"),), lambda row: row.metadata["author"]["name"] == "x"),
            "where": ("pages > 10 OR title = 'nine'", lambda row: row.pages > 10 or row.title == "nine"),
        }
        chosen = self.random.sample(sorted(offers), self.random.choice((0, 0, 1, 1, 2)))
        return {name: offers[name][0] for name in chosen}, [offers[name][1] for name in chosen]

    def query(self):
        words = " ".join(self.random.sample([*WORDS, "unheard"], self.random.randint(1, 4)))
        return words, self.vectors(1)[0]


def may_see(caller, row):
    if caller is None or row.access.visibility == "public":
        return True
    if row.access.visibility == "organization":
        return caller.org_id is not None and row.access.org_id == caller.org_id
    return caller.user_id is not None and row.access.user_id == caller.user_id


class Oracle:
    """Search chunks by the published formulas.

    Args:
        chunks: chunks of the corpus.
        allowed: mask of the visible chunks.
    """

    def __init__(self, chunks, allowed):
        self.chunks = [chunk for chunk, may in zip(chunks, allowed, strict=True) if may]
        self.counts = np.array([chunk.counts for chunk in self.chunks]).reshape(-1, len(VOCABULARY))
        self.lengths = self.counts.sum(axis=1)
        openings = defaultdict(int)
        for chunk, counts in zip(self.chunks, self.counts, strict=True):
            openings[chunk.path] = openings[chunk.path] + counts
        # Short texts are their own opening; no query has a word of a file name or title.
        found = np.array([np.minimum(openings[chunk.path], 2) for chunk in self.chunks]).reshape(self.counts.shape)
        self.identities = found / (found + 1)
        self.vectors = np.array([chunk.vector for chunk in self.chunks]).reshape(-1, DIMENSION)
        self.norms = np.linalg.norm(self.vectors, axis=1)

    def by_text(self, query):
        """Return position of a chunk -> BM25, with the share of its document's identity."""
        terms = [VOCABULARY.index(term) for term in set(query.split()) & set(VOCABULARY)]
        counts = self.counts[:, terms]
        holding = (counts > 0).sum(axis=0)
        idf = np.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        mean = self.lengths.mean() if len(counts) else 1
        saturated = counts * (K1 + 1) / (counts + K1 * (1 - B + B * self.lengths / mean)[:, None])
        scores = np.where(counts.any(axis=1), saturated @ idf + IDENTITY_SHARE * (self.identities[:, terms] @ idf), 0)
        return {int(i): float(scores[i]) for i in np.flatnonzero(scores)}

    def by_vector(self, vector):
        """Return position of a chunk -> cosine."""
        if not vector.any():
            return {}
        found = np.flatnonzero(self.norms)
        cosines = self.vectors[found] @ vector / self.norms[found] / np.linalg.norm(vector)
        return dict(zip(found.tolist(), cosines.tolist(), strict=True))

    def search(self, mode, query, vector, depth):
        """Return every possible result with its score; `depth` chunks of each side are fused."""
        if mode == "vector":
            return self.by_vector(vector)
        if mode == "text":
            return self.by_text(query)
        return dict(convex(_deepest(self.by_vector(vector), depth), _deepest(self.by_text(query), depth)))


def _deepest(side, depth):
    """Return the best of a side, with all that tie with the last."""
    ranked = sorted(side.items(), key=lambda pair: -pair[1])
    return [pair for pair in ranked if pair[1] >= ranked[min(depth, len(ranked)) - 1][1] - 1e-9]


def answers(connection, filters, settings, queries):
    """Yield the searcher's hits for each `(mode, query, vector, k)`, and its explanation without times."""
    searcher = Searcher(connection, filters, settings)
    for mode, query, vector, k in queries:
        hits = searcher.search(query, {EMBEDDER: vector}, mode, k)
        explanation = {name: value for name, value in vars(searcher.explanation).items() if name != "seconds"}
        explanation["embedders"] = searcher.embedders()
        yield hits, explanation
