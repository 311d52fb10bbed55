"""Searches in memory find what searches of the file find: SQL is the reference."""

import threading
from contextlib import closing
from dataclasses import asdict, replace

import numpy as np
import pytest

from parquetry.model import Access
from parquetry.storage.index import vector_memory, vector_memory_identities, vector_memory_postings
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.vector_memory import VectorMemories
from parquetry.storage.search import visible_index, visible_memory
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.searcher import Searcher
from tests.storage.crowd import Crowd
from tests.storage.shelf import EMBEDDER, Shelf

pytestmark = pytest.mark.slow

TIED = 1e-6
"""difference of scores that rounding alone can make"""
SCOPES = 25
"""callers with filters"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    crowd = Crowd(Shelf(tmp_path_factory.mktemp("crowd") / "corpus"), documents=400, seed=11)
    crowd.publish(40, "default", "wiki", crowd.access)
    for path in sorted(crowd.paths)[:15]:
        if len([each for each in crowd.shelf.rows() if each.path == path]) == 1:
            crowd.shelf.remove(path)
    crowd.shelf.publish({f"other-{n}.md": ["oaka elmb"] for n in range(8)}, embedder="other@2", namespace="hr")
    return crowd


@pytest.fixture(autouse=True)
def _sql_ranks(monkeypatch):
    monkeypatch.setattr(visible_index, "MOST_POSTINGS", -1)


def opened(shelf):
    snapshot = shelf.lake.snapshot()
    return IndexFolder(snapshot.layout, shelf.settings).open(snapshot)


def check_same(found, expected):
    """Compare hits by the memory with those by SQL; hits whose scores differ by rounding only may change places."""
    assert len(found) == len(expected)
    assert np.allclose([hit.score for hit in found], [hit.score for hit in expected], atol=TIED)
    if not expected:
        return
    last = expected[-1].score + 2 * TIED
    surely = [{hit.row["chunk_id"]: hit for hit in hits if hit.score > last} for hits in (found, expected)]
    assert surely[0].keys() == surely[1].keys()
    for chunk, hit in surely[0].items():
        reference = surely[1][chunk]
        assert hit.row == reference.row
        assert list(hit.row) == list(reference.row)
        assert hit.scores.keys() == reference.scores.keys()
        assert hit.identity == pytest.approx(reference.identity)


def cosines_of(searcher, hits, vectors):
    """Return chunk id -> its embedder and cosine."""
    return dict(zip([hit.row["chunk_id"] for hit in hits], searcher.cosines(hits, vectors), strict=True))


def check_cosines(found, expected):
    for chunk in found.keys() & expected.keys():
        if expected[chunk] is None:
            assert found[chunk] is None
        else:
            embedder, cosine = expected[chunk]
            assert found[chunk] == (embedder, pytest.approx(cosine, abs=TIED))


def explained(searcher):
    told = asdict(searcher.explanation)
    del told["seconds"], told["vector_candidates"]
    return told


def compare(crowd, index, memory, scopes):
    """Compare searches of random callers; return the number of hits."""
    shown = 0
    for _ in range(scopes):
        filters = Filters(caller=crowd.caller(), **crowd.filters()[0])
        sessions = index.session(), index.session()
        reference = Searcher(sessions[0], filters, crowd.shelf.settings)
        searcher = Searcher(sessions[1], filters, crowd.shelf.settings, memory)
        for mode in ("vector", "text", "hybrid"):
            query, vector = crowd.query()
            vectors = {EMBEDDER: vector, "other@2": np.ones(2, np.float32)}
            for k, distinct in ((5, False), (40, True)):
                expected = reference.search(query, vectors, mode, k, distinct=distinct)
                found = searcher.search(query, vectors, mode, k, distinct=distinct)
                shown += len(found)
                if len(reference.embedders()) < 2 or mode == "text":
                    check_same(found, expected)
                else:
                    # Ranks of ties decide about the scores of several models together.
                    assert len(found) == len(expected)
                assert explained(searcher) == explained(reference)
                check_cosines(cosines_of(searcher, found, vectors), cosines_of(reference, expected, vectors))
        for session in sessions:
            session.close()
    return shown


def test_callers_with_filters_find_what_they_find_by_sql(crowd):
    crowd.random.seed(1)
    index = opened(crowd.shelf)
    assert compare(crowd, index, VectorMemories().of(index), SCOPES) > 500
    index.close()


def test_postings_that_are_read_at_once_rank_as_sql_ranks_them(crowd, monkeypatch):
    """Of a small index, one statement reads what several would rank, for callers who see all of it or a part."""
    read, reader = [], visible_index.read_query_postings
    monkeypatch.setattr(visible_index, "read_query_postings", lambda *asked: read.append(asked) or reader(*asked))
    crowd.random.seed(5)
    index, shown = opened(crowd.shelf), 0
    for number in range(SCOPES):
        filters = Filters(caller=crowd.caller(), **crowd.filters()[0]) if number else Filters()
        (query, vector), (context, _) = crowd.query(), crowd.query()
        answers = []
        for most in (-1, 1_000_000):
            monkeypatch.setattr(visible_index, "MOST_POSTINGS", most)
            with closing(index.session()) as session:
                searcher = Searcher(session, filters, crowd.shelf.settings)
                hits = searcher.search(query, {EMBEDDER: vector}, "hybrid", 40, context=context)
                answers.append((hits, explained(searcher)))
        assert answers[0] == answers[1]
        shown += len(answers[0][0])
    assert shown > 300
    assert 0 < len(read) <= SCOPES
    index.close()


def test_what_is_too_much_for_the_memory_is_read_by_sql(crowd, monkeypatch):
    for module, name in (
        (vector_memory_postings, "LARGEST"),
        (vector_memory_identities, "LARGEST"),
        (vector_memory, "MOST_DOCUMENTS"),
    ):
        monkeypatch.setattr(module, name, 0)
    crowd.random.seed(2)
    index = opened(crowd.shelf)
    memory = VectorMemories().of(index)
    assert (memory.postings, memory.identities, memory.documents) == (None, None, None)
    assert compare(crowd, index, memory, 5) > 100
    index.close()


@pytest.mark.parametrize("share", [pytest.param(0.0, id="scan and mask"), pytest.param(1.1, id="copy")])
def test_two_stages_return_as_many_and_nothing_that_is_hidden(crowd, monkeypatch, share):
    monkeypatch.setattr(visible_index, "EXACT_CHUNKS", 10)
    monkeypatch.setattr(visible_memory, "CANDIDATES", 10)
    monkeypatch.setattr(visible_index, "CANDIDATES", 10)
    monkeypatch.setattr(visible_memory, "SCANNED_SHARE", share)
    crowd.random.seed(3)
    index = opened(crowd.shelf)
    memory = VectorMemories().of(index)
    for caller in (Caller("user-1", "org-1"), Caller("user-2"), Caller()):
        session = index.session()
        searcher = Searcher(session, Filters(caller=caller), crowd.shelf.settings, memory)
        allowed = {
            path
            for (path,) in session.execute(
                "SELECT path FROM parts.documents WHERE rowid IN (SELECT place FROM visible_documents)"
            ).fetchall()
        }
        for k in (1, 10, 60, 1000):
            hits = searcher.search("", {EMBEDDER: crowd.query()[1]}, "vector", k)
            assert {hit.row["path"] for hit in hits} <= allowed
            # Vectors of zeros are not searched.
            assert len(hits) >= min(k, searcher.explanation.chunks - 30)
        session.close()
    index.close()


@pytest.mark.parametrize("visible", [1.0, 0.6, 0.2])
def test_two_stages_find_nearly_all_of_the_nearest(tmp_path, monkeypatch, visible):
    monkeypatch.setattr(visible_index, "EXACT_CHUNKS", 100)
    monkeypatch.setattr(visible_memory, "CANDIDATES", 300)
    random = np.random.default_rng(4)
    shelf = Shelf(tmp_path / "corpus")
    centres = random.normal(size=(20, 128))
    for mine, share in ((True, visible), (False, 1 - visible)):
        count = round(3000 * share)
        vectors = centres[random.integers(0, 20, count)] + 0.7 * random.normal(size=(count, 128))
        access = Access("individual", user_id="ada") if mine else Access("individual", user_id="bob")
        if count:
            shelf.publish({f"{mine}.md": ["text"] * count}, embedder="model@128", vectors=vectors, access=access)
    index, hits = opened(shelf), 0
    filters = Filters(caller=Caller("ada"))
    exact = Searcher(index.session(), filters, shelf.settings, VectorMemories().of(index))
    for _ in range(20):
        query = (centres[random.integers(20)] + 0.7 * random.normal(size=128)).astype(np.float32)
        found = exact.search("", {"model@128": query}, "vector", 10)
        assert exact.explanation.vectors == "two-stage"
        true = (
            index.session()
            .execute(
                """SELECT chunk_index FROM parts.chunks JOIN parts.documents USING (revision) WHERE user_id = 'ada'
            ORDER BY array_cosine_similarity(vector_1, $1::FLOAT[128]) DESC LIMIT 10""",
                [query.tolist()],
            )
            .fetchall()
        )
        assert len(found) == 10
        hits += len({hit.row["chunk_index"] for hit in found} & {index for (index,) in true})
    assert hits / 200 > 0.97
    index.close()


@pytest.mark.slow
def test_answers_follow_twenty_publishes(tmp_path):
    crowd = Crowd(Shelf(tmp_path / "corpus"), documents=60, seed=7)
    memories, before = VectorMemories(), None
    for number in range(20):
        if number % 4 == 3:
            row = crowd.random.choice(crowd.shelf.rows())
            gone = replace(row, removed=True)
            crowd.shelf.lake.publish(crowd.shelf.lake.snapshot(), [gone], f"remove-{number}")
        elif number % 4 == 1:
            row = crowd.random.choice(crowd.shelf.rows())
            shared = replace(row, access=crowd.access())
            crowd.shelf.lake.publish(crowd.shelf.lake.snapshot(), [shared], f"permit-{number}")
        else:
            paths = crowd.random.sample(sorted(crowd.paths), 3)
            texts = {path: crowd.texts() for path in paths}
            crowd.shelf.publish(texts, vectors=crowd.vectors(sum(map(len, texts.values()))))
        index = opened(crowd.shelf)
        assert compare(crowd, index, memories.of(index), 2) > 0
        if before is not None:
            # A reader of the version before goes on.
            compare(crowd, before, memories.of(before), 1)
            before.close()
        before = index
    before.close()


@pytest.mark.slow
def test_many_threads_search_while_the_next_version_is_read(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({f"{n}.md": [f"oak {n}"] for n in range(50)})
    index, memories, wrong = opened(shelf), VectorMemories(), []
    memory, stop = memories.of(index), threading.Event()

    def search():
        session = index.session()
        searcher = Searcher(session, Filters(), shelf.settings, memory)
        expected = searcher.search("oak 7", {EMBEDDER: np.ones(4, np.float32)}, "hybrid", 5)
        while not stop.wait(0.01):
            if searcher.search("oak 7", {EMBEDDER: np.ones(4, np.float32)}, "hybrid", 5) != expected:
                wrong.append(1)
        session.close()

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(4):
        shelf.publish({f"new-{number}.md": [f"oak {number}"]})
        other = opened(shelf)
        assert memories.of(other).spaces[EMBEDDER].live == 51 + number
        other.close()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    index.close()
