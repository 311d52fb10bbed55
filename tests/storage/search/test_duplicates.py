"""Equal chunks form one hit that names the other places, and there are still as many hits as requested."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from parquetry.model import ENTRY_TYPE, Access
from parquetry.storage.search import visible_index as search
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.searcher import Searcher
from tests.storage.crowd import Crowd, Oracle, may_see
from tests.storage.notebook import ADA, OAK, entry
from tests.storage.shelf import EMBEDDER, Shelf

pytestmark = pytest.mark.slow

AXES = np.eye(4, dtype=np.float32)
MODES = ("text", "vector", "hybrid")


def found(shelf, mode, k, caller=None, query="oak", vector=AXES[0], distinct=True):
    with shelf.index() as connection:
        searcher = Searcher(connection, Filters(caller=caller), shelf.settings)
        return searcher.search(query, {EMBEDDER: vector}, mode, k, distinct=distinct)


def paths(hits):
    """Return text -> the paths of a hit, its own first."""
    return {hit.row["text"]: [hit.row["path"], *(row["path"] for row in hit.also_in)] for hit in hits}


def in_order(shelf, *names):
    """Return paths in the order of ties: by document id."""
    return [row.path for row in sorted(shelf.rows(), key=lambda row: row.document_id) if row.path in names]


@pytest.mark.parametrize("mode", MODES)
def test_equal_chunks_are_one_hit_that_names_the_other_places(shelf, mode):
    shelf.publish({f"{name}.md": ["oak oak"] for name in "abc"}, vectors=[AXES[0]] * 3)
    shelf.publish({"d.md": ["oak", "oak elm"]}, vectors=[AXES[0] + AXES[1], AXES[1]])
    hits = found(shelf, mode, 5)
    assert paths(hits) == {"oak oak": in_order(shelf, "a.md", "b.md", "c.md"), "oak": ["d.md"], "oak elm": ["d.md"]}
    assert [hit.row["text"] for hit in hits] == ["oak oak", "oak", "oak elm"]


@pytest.mark.parametrize("mode", MODES)
def test_with_duplicates_every_chunk_is_a_hit(shelf, mode):
    shelf.publish({f"{name}.md": ["oak oak"] for name in "abc"}, vectors=[AXES[0]] * 3)
    hits = found(shelf, mode, 5, distinct=False)
    assert [hit.row["path"] for hit in hits] == in_order(shelf, "a.md", "b.md", "c.md")
    assert [hit.also_in for hit in hits] == [()] * 3


def test_text_that_a_document_repeats_is_one_hit_too(shelf):
    shelf.publish({"a.md": ["oak", "elm", "oak"]})
    (hit,) = found(shelf, "text", 5)
    assert (hit.row["chunk_index"], [row["chunk_index"] for row in hit.also_in]) == (0, [2])


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """A corpus whose best text occurs 300 times ahead of the others, more than either side's depth; not changed."""
    shelf = Shelf(tmp_path_factory.mktemp("repeated") / "corpus")
    shelf.publish({f"best/{number}.md": ["oak oak oak"] for number in range(300)}, vectors=np.tile(AXES[0], (300, 1)))
    rest = np.array([[1, number / 10, 1, 0] for number in range(1, 41) for _ in range(2)])
    others = {f"rest/{number}-{copy}.md": [f"some oak {number}"] for number in range(40) for copy in range(2)}
    shelf.publish(others, vectors=rest)
    return shelf


@pytest.mark.parametrize("two_stages", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 5, 30, 200])
def test_as_many_different_texts_as_asked_for_or_as_there_are(repeated, monkeypatch, mode, k, two_stages):
    monkeypatch.setattr(search, "EXACT_CHUNKS", 20 if two_stages else 20_000)
    monkeypatch.setattr(search, "CANDIDATES", 20)
    hits = found(repeated, mode, k)
    assert len(hits) == min(k, 41)
    assert len({hit.row["text"] for hit in hits}) == len(hits)
    assert hits[0].row["text"] == "oak oak oak"
    if not two_stages:
        assert len(hits[0].also_in) == 299
        # The copies of the last one may rank below the candidates examined.
        assert [len(hit.also_in) for hit in hits[1:-1]] == [1] * (len(hits) - 2)


def test_copy_under_another_title_is_named_though_it_stands_below_the_last_result(shelf):
    """Equal texts have different vectors if chunks are embedded with their titles."""
    shelf.publish({"a.md": ["oak"], "b.md": ["oak"]}, vectors=[AXES[0], AXES[0] + AXES[1]])
    (hit,) = found(shelf, "vector", 1)
    assert paths([hit]) == {"oak": ["a.md", "b.md"]}
    assert hit.score == 1.0


def test_thousands_of_chances_give_as_many_different_texts_as_the_oracle(tmp_path):
    crowd = Crowd(Shelf(tmp_path / "corpus"), documents=400, seed=11)
    few = [crowd.text() for _ in range(12)]
    crowd.texts = lambda: [crowd.random.choice(few) for _ in range(crowd.random.choice((1, 2)))]
    crowd.publish(300, "hr", "docs", crowd.access)
    searches = 0
    with crowd.shelf.index() as connection:
        connection.execute("SET threads = 1")
        for _ in range(25):
            caller = crowd.caller()
            oracle = Oracle(crowd.chunks, [may_see(caller, chunk.row) for chunk in crowd.chunks])
            searcher = Searcher(connection, Filters(caller=caller), crowd.shelf.settings)
            for mode in MODES:
                query, vector = crowd.query()
                k = crowd.random.choice((1, 5, 40, 250))
                scores = oracle.search(mode, query, vector, len(crowd.chunks))
                matching = {oracle.chunks[place].text for place in scores}
                hits = searcher.search(query, {EMBEDDER: vector}, mode, k, distinct=True)
                assert len(hits) == len({hit.row["text"] for hit in hits}) == min(k, len(matching))
                places = [row["chunk_id"] for hit in hits for row in (hit.row, *hit.also_in)]
                assert len(places) == len(set(places))
                allowed = {(chunk.row.document_id, chunk.text) for chunk in oracle.chunks}
                assert {(row["document_id"], row["text"]) for hit in hits for row in hit.also_in} <= allowed
                searches += 1
    assert searches == 75


# --- permissions


@pytest.mark.parametrize("two_stages", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_copies_that_the_caller_may_not_see_change_no_byte_of_the_answer(shelf, monkeypatch, mode, two_stages):
    monkeypatch.setattr(search, "EXACT_CHUNKS", 3 if two_stages else 20_000)
    texts = {f"{number}.md": [f"oak {'elm ' * (number % 4)}".strip()] for number in range(12)}
    vectors = np.array([AXES[0] + (number % 4) * AXES[1] for number in range(12)])
    shelf.publish(texts, vectors=vectors)
    caller = Caller("ada", "acme")

    def told():
        with shelf.index() as connection:
            searcher = Searcher(connection, Filters(caller=caller), shelf.settings)
            hits = [searcher.search("oak elm", {EMBEDDER: AXES[0]}, mode, k, distinct=True) for k in (1, 3, 9)]
            explanation = replace(searcher.explanation, seconds={})
        return json.dumps([[[asdict(hit) for hit in each] for each in hits], asdict(explanation)], default=str)

    before = told()
    assert '"also_in": [{' in before
    for access in (Access("individual", user_id="bob"), Access("organization", "other")):
        shelf.publish(
            {f"{access.visibility}/{path}": text for path, text in texts.items()}, vectors=vectors, access=access
        )
    assert told() == before


@pytest.mark.parametrize("mode", MODES)
def test_hidden_original_leaves_its_visible_copy_as_the_result(shelf, mode):
    shelf.publish({"secret.md": ["oak"]}, vectors=[AXES[0]], access=Access("individual", user_id="bob"))
    shelf.publish({"public.md": ["oak"]}, vectors=[AXES[0]])
    seen = {user: paths(found(shelf, mode, 5, Caller(user))) for user in ("ada", "bob")}
    assert seen["ada"] == {"oak": ["public.md"]}
    assert seen["bob"] == {"oak": in_order(shelf, "public.md", "secret.md")}


# --- entries


def test_entries_with_equal_texts_stay_apart(notebook):
    """Each is a separate statement with its own sessions, and can be undone separately."""
    own = entry(OAK.text, ADA)
    notebook.shelf.publish({"a.md": [OAK.text], "b.md": [OAK.text]})
    notebook.learn(OAK, own)
    with notebook.shelf.index() as connection:
        searcher = Searcher(connection, Filters(what="both"), notebook.shelf.settings)
        hits = searcher.search("oak", {}, "text", 10, distinct=True)
    entries = {hit.row["document_id"] for hit in hits if hit.row["media_type"] == ENTRY_TYPE}
    (document,) = [hit for hit in hits if hit.row["media_type"] != ENTRY_TYPE]
    assert entries == {OAK.entry_id, own.entry_id}
    assert sorted([document.row["path"], *(row["path"] for row in document.also_in)]) == ["a.md", "b.md"]
