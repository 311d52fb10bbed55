"""The reader that services keep open: cached answers, events, many queries and many threads."""

import json
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter

import pytest

from parquetry.errors import SettingsError
from parquetry.serving.search.answer_cache import AnswerCache
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import override
from parquetry.storage.search.filters import Caller, Filters
from tests.servers.embedding_server import EmbeddingServer
from tests.serving.search.counting_cache import CountingCache

pytestmark = pytest.mark.slow

OAK = SearchRequest("oak", "text", filters=Filters(caller=Caller("ada")))


@pytest.fixture
def library(workshop):
    """Refresh three texts."""
    workshop.write("a.md", "The oak table has four legs.")
    workshop.write("b.txt", "An oak chair, and an elm chair.")
    workshop.write("sub/c.md", "Only elm.")
    workshop.refresh()
    return workshop


def texts(response):
    return [hit.row["text"] for hit in response.hits]


# --- the cache


def test_same_search_is_answered_from_the_cache(library):
    reader = library.reader()
    first, second = reader.search(OAK), reader.search(replace(OAK))
    assert (first.cached, second.cached) == (False, True)
    assert first.hits == second.hits
    assert len(first.hits) == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(OAK, query="elm"), id="query"),
        pytest.param(replace(OAK, mode="vector"), id="mode"),
        pytest.param(replace(OAK, k=1), id="k"),
        pytest.param(replace(OAK, level="document"), id="level"),
        pytest.param(replace(OAK, min_relevance=0.1), id="min-score"),
        pytest.param(replace(OAK, filters=Filters()), id="operator"),
        pytest.param(replace(OAK, filters=Filters(caller=Caller("bob"))), id="user"),
        pytest.param(replace(OAK, filters=Filters(caller=Caller("ada", "acme"))), id="organization"),
        pytest.param(replace(OAK, filters=replace(OAK.filters, filename="*.md")), id="filename"),
        pytest.param(replace(OAK, filters=replace(OAK.filters, tags=("x",))), id="tag"),
        pytest.param(replace(OAK, filters=replace(OAK.filters, where="pages > 3")), id="where"),
    ],
)
def test_any_other_search_is_not(library, other):
    reader = library.reader()
    reader.search(OAK)
    found = reader.search(other)
    assert not found.cached
    assert texts(found) == texts(library.reader().search(other))


def test_publish_is_never_answered_from_before(library):
    cache = AnswerCache(9)
    before = Reader(library.settings, cache=cache).search(OAK)
    library.write("a.md", "The oak table has three legs.")
    library.refresh()
    after = Reader(library.settings, cache=cache).search(OAK)
    assert (after.cached, after.version) == (False, before.version + 1)
    assert texts(before) != texts(after)
    old = Reader(library.settings, before.version, cache).search(OAK)
    assert (old.cached, texts(old)) == (True, texts(before))


def test_changed_permission_is_never_answered_from_before(library):
    cache = AnswerCache(9)
    assert len(Reader(library.settings, cache=cache).search(OAK).hits) == 2
    library.sections["source"] = {"visibility": "individual", "user_id": "bob"}
    library.refresh()
    assert Reader(library.settings, cache=cache).search(OAK).hits == ()


def test_other_corpus_in_the_same_place_is_not_taken_for_the_first(library):
    """The other corpus has reached the same version."""
    cache = AnswerCache(9)
    assert len(Reader(library.settings, cache=cache).search(OAK).hits) == 2
    (library.root / "corpus").rename(library.root / "old")
    library.write("b.txt", "No wood at all.")
    library.refresh()
    found = Reader(library.settings, cache=cache).search(OAK)
    assert (found.version, found.cached, len(found.hits)) == (1, False, 1)


def test_other_settings_of_the_search_are_another_search(library):
    cache = AnswerCache(9)
    Reader(library.settings, cache=cache).search(OAK)
    other = override(library.settings, {"search": {"fusion": "rrf"}})
    assert not Reader(other, cache=cache).search(OAK).cached


def test_cache_of_no_entries_keeps_nothing(library):
    library.sections["search"] = {"cache_entries": 0}
    reader = library.reader()
    assert [reader.search(OAK).cached for _ in range(2)] == [False, False]


# --- many queries


def test_queries_with_the_same_filters_are_embedded_in_one_request(workshop):
    with EmbeddingServer() as server:
        workshop.sections |= {
            "corpus": {"embedder": "openai:m"},
            "embedding": {"base_url": server.url, "api_key": "x"},
        }
        workshop.write("a.md", "red cat")
        workshop.refresh()
        server.requests.clear()
        asked = ["red cat", "green dog", "red cat", "blue bird"]
        found = list(workshop.reader().search_all([SearchRequest(query) for query in asked]))
        assert [request.inputs for request in server.requests] == [["red cat", "green dog", "blue bird"]]
    assert [each.request.query for each in found] == asked
    assert [each.cached for each in found] == [False, False, True, False]
    assert found[2].hits == found[0].hits
    assert all(each.hits for each in found)


def test_many_queries_are_answered_as_each_alone(library):
    requests = [
        SearchRequest(query, mode, k, filters=filters)
        for query in ("oak", "elm chair", "", "zzz")
        for mode in ("text", "vector", "hybrid")
        for k, filters in ((1, Filters()), (5, Filters(filename="*.md")))
    ]
    together = list(library.reader().search_all(requests))
    assert [each.request for each in together] == requests
    for each in together:
        alone = library.reader().search(each.request)
        assert [(hit.row["chunk_id"], hit.score) for hit in each.hits] == [
            (hit.row["chunk_id"], hit.score) for hit in alone.hits
        ]


def test_batch_holds_no_ranking_but_the_one_it_is_asked_for(library):
    """A ranking may hold thousands of chunks with their texts, and a batch has thousands of queries."""
    cache = CountingCache()
    requests = [SearchRequest(query, "text") for query in ("oak", "elm", "chair", "table", "legs")]
    # The deque is a caller that keeps nothing.
    deque(Reader(library.settings, cache=cache).search_all(requests), maxlen=0)
    assert cache.held == [1] * 5


def test_ranking_of_a_query_that_repeats_is_held_until_its_last_place(library):
    cache = CountingCache()
    requests = [SearchRequest(query, "text") for query in ("oak", "elm", "oak", "chair", "oak", "legs", "elm")]
    # Unlike the loop of a comprehension, `map` keeps no response while it waits for the next.
    cached = map(attrgetter("cached"), Reader(library.settings, cache=cache).search_all(requests))
    assert list(cached) == [False, False, True, False, True, False, True]
    assert cache.held == [1, 2, 3, 2]


def test_reader_that_is_not_asked_to_the_end_can_be_asked_again(library):
    reader = library.reader()
    for _ in reader.search_all([OAK, replace(OAK, query="elm")]):
        break
    assert len(reader.search(replace(OAK, query="elm")).hits) == 2


def test_threads_with_different_filters_do_not_see_each_others_documents(library):
    library.sections["search"] = {"cache_entries": 0}
    reader = library.reader()

    def work(number):
        filename = ("*.md", "*.txt", "sub/*", "*")[number % 4]
        found = reader.search(
            SearchRequest("oak elm", ("text", "hybrid")[number % 2], filters=Filters(filename=filename))
        )
        return filename, {hit.row["filename"] for hit in found.hits}

    expected = {"*.md": {"a.md", "c.md"}, "*.txt": {"b.txt"}, "sub/*": {"c.md"}, "*": {"a.md", "b.txt", "c.md"}}
    with ThreadPoolExecutor(8) as pool:
        for filename, found in pool.map(work, range(64)):
            assert found == expected[filename]


# --- events


def test_every_search_is_logged_with_its_scores(library, tmp_path):
    log = tmp_path / "logs" / "searches.jsonl"
    library.sections["search"] = {"log": str(log)}
    reader = library.reader()
    reader.search(OAK)
    reader.search(OAK)
    reader.search(SearchRequest("zzz", "text", 3))
    first, second, third = (json.loads(line) for line in log.read_text().splitlines())
    scores = [hit.score for hit in reader.search(OAK).hits]
    assert (first["query"], first["mode"], first["k"], first["caller"], first["version"]) == ("oak", "text", 5, True, 1)
    assert (first["count"], first["best_score"]) == (2, round(max(scores), 6))
    assert first["mean_score"] == pytest.approx(sum(scores) / 2, abs=1e-6)
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["seconds"] > 0
    assert (third["count"], third["mean_score"], third["best_score"], third["caller"]) == (0, None, None, False)


def test_log_that_cannot_be_written_breaks_no_search(library, capsys):
    library.sections["search"] = {"log": str(library.folder / "a.md" / "log")}
    reader = library.reader()
    assert [len(reader.search(OAK).hits) for _ in range(2)] == [2, 2]
    assert capsys.readouterr().err.count("searches are not logged") == 1


# --- opening


def test_inspection_needs_no_index(library):
    """Listing documents must not wait for an index to be built."""
    reader = library.reader()
    document = reader.document("a.md")
    assert reader.text(document["document_id"]).startswith("The oak table")
    assert len(reader.chunks(document["document_id"])) == 1
    assert len(reader.documents()) == 3
    assert reader._index is None


def test_closed_reader_opens_again(library):
    reader = library.reader()
    reader.search(OAK)
    reader.close()
    assert len(reader.search(replace(OAK, query="elm")).hits) == 2
    assert len(reader.documents()) == 3


def test_corpus_of_another_model_is_refused_for_vectors_and_not_for_words(library):
    library.sections["embedding"] = {"dimension": 64}
    with pytest.raises(SettingsError, match="namespace default was embedded by"):
        library.search("oak")
    assert len(library.search("oak", mode="text").hits) == 2
