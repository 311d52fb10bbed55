"""Callers find all of what they may see and nothing else, and forbidden documents change nothing."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from parquetry.errors import SettingsError
from parquetry.model import Access
from parquetry.storage.index.open_index import in_memory
from parquetry.storage.search import visible_index as search
from parquetry.storage.search.filters import Caller, Filters
from tests.records import THEN, row
from tests.storage.crowd import Crowd, Oracle, answers, may_see
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

MODES = ("vector", "text", "vector", "hybrid")
PARTS, SCOPES, SEARCHES = 4, 80, 16
"""number of tests, of callers with filters in each test, and of searches by each caller: 5,120 searches in all"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    return Crowd(Shelf(tmp_path_factory.mktemp("crowd") / "corpus"))


def asked(crowd, number=SEARCHES):
    return [(MODES[i % len(MODES)], *crowd.query(), crowd.random.choice((1, 5, 10, 40, 250))) for i in range(number)]


def check_scope(connection, crowd, exact=True):
    """Compare every answer for one caller and one set of filters with the oracle's; return the number of hits."""
    caller, (given, predicates) = crowd.caller(), crowd.filters()
    mask = [may_see(caller, c.row) and all(meets(c.row) for meets in predicates) for c in crowd.chunks]
    oracle = Oracle(crowd.chunks, mask)
    allowed = oracle.chunks
    place = {(c.row.document_id, c.text): i for i, c in enumerate(allowed)}
    queries, shown = asked(crowd), 0
    found = answers(connection, Filters(caller=caller, **given), crowd.shelf.settings, queries)
    for (mode, query, vector, k), (hits, explanation) in zip(queries, found, strict=True):
        told = f"{mode} {query!r} as {caller} with {given}"
        assert explanation["chunks"] == len(allowed), told
        assert explanation["documents"] == len({c.row.document_id for c in allowed}), told
        # A missing key is a leak.
        positions = [place[hit.row["document_id"], hit.row["text"]] for hit in hits]
        assert len({hit.row["chunk_id"] for hit in hits}) == len(hits), told
        scores = oracle.search(mode, query, vector, max(k, crowd.shelf.settings.depth))
        assert len(hits) == min(k, len(scores)), told
        if exact:
            best = sorted(scores.values(), reverse=True)[:k]
            assert np.allclose([hit.score for hit in hits], best, atol=1e-5), told
            assert np.allclose(best, [scores[i] for i in positions], atol=1e-5), told
        shown += len(hits)
    return shown


@pytest.mark.parametrize("part", range(PARTS))
def test_thousands_of_searches_find_exactly_what_is_allowed(crowd, part):
    assert len(crowd.paths) == 2000
    assert PARTS * SCOPES * SEARCHES >= 5000
    crowd.random.seed(part)
    with crowd.shelf.index() as connection:
        connection.execute("SET threads = 1")
        shown = [check_scope(connection, crowd) for _ in range(SCOPES)]
    assert sum(shown) > 10_000


def test_search_in_two_stages_finds_as_many_and_nothing_else(crowd, monkeypatch):
    monkeypatch.setattr(search, "EXACT_CHUNKS", 50)
    with crowd.shelf.index() as connection:
        connection.execute("SET threads = 1")
        assert sum(check_scope(connection, crowd, exact=False) for _ in range(12)) > 500


# --- forbidden documents change nothing

CALLERS = [Caller("user-1", "org-1"), Caller("user-2"), Caller(org_id="org-3"), Caller(), Caller("user-4", "org-5")]
CONDITIONS = [
    {},
    {"since": THEN},
    {"where": "pages > 3"},
    {"where": "title::INTEGER > 3"},
    {"where": "titel = 1"},
    {"tags": ("red",)},
]


def everything_told(connection, crowd, queries):
    """Return every byte of several callers' answers: rows, scores, order, counts, explanations and errors."""
    lines = []
    connection.execute("SET threads = 1")
    for caller in CALLERS:
        for condition in CONDITIONS:
            try:
                for hits, explanation in answers(
                    connection, Filters(caller=caller, **condition), crowd.shelf.settings, queries
                ):
                    lines.append(json.dumps([[asdict(hit) for hit in hits], explanation], default=str))
            except SettingsError as error:
                lines.append(str(error))
    return lines


def forbid(crowd, number):
    """Publish documents of others, with the same words and vectors, and with words, titles and a model of their own."""
    owners = iter([Access("individual", user_id="mallory"), Access("organization", org_id="evil")] * number)
    crowd.publish(number - 10, "default", "docs", lambda: next(owners))
    others = {f"others/{i}.md": [crowd.text()] for i in range(10)}
    crowd.shelf.publish(others, embedder="secret@2", namespace="evil", access=Access("organization", org_id="evil"))


@pytest.mark.parametrize(
    ("exact_chunks", "number"), [pytest.param(20_000, 25, id="exact"), pytest.param(50, 3, id="two-stage")]
)
def test_forbidden_documents_change_no_byte_of_any_answer(tmp_path, monkeypatch, exact_chunks, number):
    monkeypatch.setattr(search, "EXACT_CHUNKS", exact_chunks)
    crowd = Crowd(Shelf(tmp_path / "corpus"), documents=300, seed=6)
    queries = asked(crowd, number)
    with crowd.shelf.index() as connection:
        before = everything_told(connection, crowd, queries)
    assert len(before) == len(CALLERS) * (4 * number + 2)
    crowd.text = lambda: "unheard secret oaka oaka elmb"
    crowd.properties = lambda access: {"access": access, "title": "not a number", "pages": 1}
    forbid(crowd, 200)
    with crowd.shelf.index() as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchall() == [(500,)]
        assert everything_told(connection, crowd, queries) == before
    if exact_chunks < 300:
        built_again = in_memory(crowd.shelf.lake.snapshot(), crowd.shelf.settings.language)
        assert everything_told(built_again.connection, crowd, queries) == before
        built_again.close()


# --- changed permissions


def test_permissions_that_change_at_the_source_embed_nothing_and_hold_at_once(workshop):
    for number in range(3):
        workshop.write(f"{number}.md", f"The oak number {number}.")
    assert workshop.refresh().work.chunks_embedded == 3
    stranger, member = Filters(caller=Caller("eve")), Filters(caller=Caller("ada", "acme"))
    assert len(workshop.search("oak", filters=stranger).hits) == 3
    workshop.sections["source"] = {"visibility": "organization", "org_id": "acme"}
    report = workshop.refresh()
    assert report.documents.permissions == 3
    work = report.work
    assert (work.chunks_written, work.chunks_embedded, work.tokens, work.bytes_read) == (0, 0, 0, 0)
    assert workshop.search("oak", filters=stranger).hits == ()
    assert len(workshop.search("oak", filters=member).hits) == 3


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_copy_that_the_caller_may_not_see_is_not_told_of_by_the_one_that_it_may(tmp_path, mode):
    """Two documents of the same content have one revision, whose chunks are stored once."""
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"handbook.md": ["oak"]}, vectors=np.eye(4)[:1])
    (original,) = shelf.rows()
    other = row("merger/plan.md", revision=original.revision, embedder=original.embedder, chunks=1)
    secret = replace(other, access=Access("individual", None, "ada"))
    shelf.lake.publish(shelf.lake.snapshot(), [secret], "run-copy")
    query = [(mode, "oak", np.eye(4, dtype=np.float32)[0], 10)]
    with shelf.index() as connection:
        found = {
            user: next(iter(answers(connection, Filters(caller=Caller(user)), shelf.settings, query)))[0]
            for user in ("bob", "ada")
        }
    assert [hit.row["filename"] for hit in found["bob"]] == ["handbook.md"]
    assert {hit.row["filename"] for hit in found["ada"]} == {"handbook.md", "plan.md"}
