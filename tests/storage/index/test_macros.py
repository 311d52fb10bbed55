"""Searches in SQL return the same results as searches of the program."""

import numpy as np
import pytest

from parquetry.settings.sections import SearchSettings
from parquetry.storage.connect import connect
from parquetry.storage.index import views as index_views
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import in_memory
from parquetry.storage.search import visible_index as search
from parquetry.storage.search.searcher import Searcher
from parquetry.storage.search.visible_index import CANDIDATES

pytestmark = pytest.mark.slow

QUERIES = [
    "oak",
    "oak table legs",
    "the",
    "what is the",
    "oak oak oak elm",
    "SR-2031-007",
    "zzz",
    "zzz the",
    "漢字 oak",
]
WORDS = ["oak", "elm", "the", "table", "SR-2031-007", "漢字かな", "legs", "walked", "walking", "of"]


@pytest.fixture
def corpus(shelf):
    shelf.settings = SearchSettings(language="english")
    random = np.random.default_rng(3)
    sizes = {f"{number}.md": 1 + number % 3 for number in range(60)}
    shelf.publish({path: [" ".join(random.choice(WORDS, 6)) for _ in range(size)] for path, size in sizes.items()})
    shelf.publish({"a.md": ["oak of another namespace"]}, namespace="hr")
    return shelf


def programs(connection, query, vector, mode, k=10):
    hits = Searcher(connection).search(query, {"model@4": vector}, mode, k)
    return [(hit.row["chunk_id"], hit.score) for hit in hits]


def close(found, expected):
    assert [chunk for chunk, *_ in found] == [chunk for chunk, _ in expected]
    assert [score for _, score, *_ in found] == pytest.approx([score for _, score in expected])


@pytest.fixture(params=["exact", "two-stage"])
def index(corpus, request, monkeypatch):
    if request.param == "two-stage":
        monkeypatch.setattr(search, "EXACT_CHUNKS", 5)
        monkeypatch.setattr(index_views, "TWO_STAGE_ROWS", 5)
    opened = in_memory(corpus.lake.snapshot(), "english")
    yield opened.connection
    opened.close()


@pytest.mark.parametrize("query", QUERIES)
def test_macros_rank_as_searches_do(index, query):
    vector = np.random.default_rng(len(query)).normal(size=4).astype(np.float32)
    listed = vector.tolist()
    text = index.execute("SELECT chunk_id, score FROM search_text($1, 10)", [query]).fetchall()
    close(text, programs(index, query, vector, "text"))
    near = index.execute("SELECT chunk_id, score FROM search_vector($1, 10)", [listed]).fetchall()
    close(near, programs(index, query, vector, "vector"))
    both = index.execute("SELECT chunk_id, score FROM search_hybrid($1, $2, 10)", [query, listed]).fetchall()
    close(both, programs(index, query, vector, "hybrid"))


def test_macros_leave_out_what_was_replaced_and_removed(corpus):
    corpus.publish({"1.md": ["walnut one"], "2.md": ["walnut two"]})
    IndexFolder(corpus.lake.layout, corpus.settings).refresh(corpus.lake.snapshot())
    corpus.publish({"1.md": ["cherry"]})
    corpus.remove("2.md")
    with connect(str(corpus.root)) as connection:
        assert connection.execute("SELECT text FROM search_text('walnut', 10)").fetchall() == []
        assert connection.execute("SELECT text FROM search_text('cherry', 10)").fetchall() == [("cherry",)]
        shown = connection.execute("SELECT text FROM search_vector([1, 1, 1, 1], 1000)").fetchall()
        assert len(shown) == connection.execute("SELECT count(*) FROM chunks").fetchall()[0][0]
        assert not [text for (text,) in shown if text.startswith("walnut")]


def test_two_stages_find_the_nearest(shelf, monkeypatch):
    monkeypatch.setattr(search, "EXACT_CHUNKS", 100)
    random = np.random.default_rng(11)
    centres = random.normal(size=(40, 64))
    vectors = (centres[random.integers(0, 40, 6000)] + 0.5 * random.normal(size=(6000, 64))).astype(np.float32)
    shelf.publish({"a.md": [f"chunk {number}" for number in range(6000)]}, vectors=vectors, embedder="model@64")
    with shelf.index() as connection:
        searcher = Searcher(connection)
        recall = []
        for number in random.integers(0, 6000, 20):
            asked = vectors[number] + 0.1 * random.normal(size=64).astype(np.float32)
            hits = searcher.search("", {"model@64": asked}, "vector", 10)
            cosines = vectors @ asked / np.linalg.norm(vectors, axis=1)
            expected = {f"chunk {each}" for each in np.argsort(-cosines)[:10]}
            recall.append(len(expected & {hit.row["text"] for hit in hits}) / 10)
        assert searcher.explanation.vectors == "two-stage"
        assert searcher.explanation.vector_candidates == CANDIDATES
    assert np.mean(recall) >= 0.95
