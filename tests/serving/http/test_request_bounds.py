"""Every part of a request has a bound, and so has its answer: one caller cannot take what others need."""

import pytest

from parquetry.serving import remote
from parquetry.serving.http import gateway_models, retrieving
from parquetry.serving.search.summaries import READ, summary
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import ok, problem
from tests.workshop import Workshop

RETRIEVE = "/api/v1/knowledge/default/retrieve"
LONG = "# Long\n\nThe first sentence is about oak. " + "Another one is about oak tables. " * 1_000


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("bounds"))
    workshop.write("oak.md", "An oak table.")
    workshop.write("long.md", LONG)
    workshop.refresh()
    settings = {"corpus": {"root": str(workshop.root / "corpus")}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        app.workshop = workshop
        yield app


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"queries": ["oak", ""]}, "body.queries.1: String should have at least 1 character"),
        ({"queries": ["x" * 32_769]}, "body.queries.0: String should have at most 32768 characters"),
        ({"queries": ["oak"] * 100, "top_k": 21}, "body: queries times top_k is at most 2,000; ask for fewer at once"),
        ({"context": "x" * 32_769}, "body: context is longer than 32,768 characters"),
        ({"context": [{"role": "user", "content": "x" * 20_000}] * 2}, "context is longer than 32,768 characters"),
        ({"context": [{"role": "user", "content": ""}] * 1001}, "at most 1000 items"),
        ({"filters": {"metadata": {f"k{n}": 1 for n in range(51)}}}, "names 51 paths; a request may name 50"),
        ({"filters": {"metadata": {"k" * 1025: 1}}}, "a path into the metadata has at most 1,024 characters"),
        ({"filters": {"metadata": {"a": {"in": [1] * 600}, "b": {"in": [2] * 600}}}}, "together hold at most 1,000"),
        ({"filters": {"metadata": {"a": 10**400}}}, "body.filters.metadata.a"),
        ({"filters": {"metadata": {"a": {"gt": 10**400}}}}, "body.filters.metadata.a"),
        ({"filters": {"tags": ["x" * 1025]}}, "body.filters.tags.0"),
        ({f"k{n}": 1 for n in range(200)}, "body: has 201 fields, more than any request has"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_part_of_a_request_that_is_too_large_is_refused_by_name(app, asked, told):
    sent = asked if "queries" in asked else {"query": "oak", **asked}
    with app.client() as client:
        assert told in problem(client.post(RETRIEVE, json=sent), 422, "invalid-request")["detail"]


def test_large_numbers_compare_as_numbers(app):
    with app.client() as client:
        for value in (2**63 - 1, -(2**63), 2**70, 1e300):
            assert (
                ok(client.post(RETRIEVE, json={"query": "oak", "filters": {"metadata": {"a": value}}}))["chunks"] == []
            )


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/v1/jobs", {"kind": "reindex", "documents": ["x" * 1025]}),
        ("/api/v1/jobs", {"kind": "restore", "version": 2**63}),
        ("/api/knowledge/documents", {"content": "x", "filename": "a.md", "tags": ["x" * 1025]}),
        ("/api/v1/sessions", {"session_id": "a", "messages": [{"role": "user", "content": "x"}] * 50_001}),
    ],
)
def test_part_of_a_write_that_is_too_large_is_refused(app, path, sent):
    with app.client() as client:
        problem(client.post(path, json=sent), 422, "invalid-request")


def test_full_texts_that_fit_into_no_answer_are_refused(app, monkeypatch):
    asked = {"query": "oak tables", "top_k": 200, "load": "full", "mode": "text"}
    with app.client() as client:
        chunks = ok(client.post(RETRIEVE, json=asked))["chunks"]
        length = sum(len(each["content"]) for each in chunks)
        assert length > 2 * len(LONG), "the document is sent with each of its chunks"
        monkeypatch.setattr(retrieving, "MOST_LOADED", length)
        assert len(ok(client.post(RETRIEVE, json=asked))["chunks"]) == len(chunks)
        monkeypatch.setattr(retrieving, "MOST_LOADED", length - 1)
        told = problem(client.post(RETRIEVE, json=asked), 422, "answer-too-large")
        assert f"{length:,} characters" in told["detail"]
        assert ok(client.post(RETRIEVE, json={**asked, "level": "document"}))["chunks"]


def test_summary_is_of_the_beginning_and_reads_no_more(app):
    assert len(LONG) > 2 * READ
    with app.client() as client:
        asked = {"query": "oak", "load": "summary", "filters": {"filename": "long.md"}, "top_k": 1}
        (chunk,) = ok(client.post(RETRIEVE, json=asked))["chunks"]
    assert chunk["summary"] == summary(LONG)


def test_client_asks_for_no_more_at_once_than_a_service_answers():
    assert remote.RESULTS_AT_ONCE == gateway_models.MOST_CHUNKS
    assert remote.QUERIES_AT_ONCE == gateway_models.MOST_QUERIES


def test_many_queries_with_many_results_are_divided_by_the_client(app):
    with app.client() as client:
        corpus = remote.RemoteCorpus(app.url, None, None, 60)
        found = corpus.search(["oak"] * 25, remote.SearchOptions(k=200))
        corpus.close()
        assert len(found) == 25
        assert client.get("/metrics").text.count("/api/v1/knowledge/{namespace}/retrieve") > 0


def test_made_up_methods_are_counted_as_one(app):
    with app.client() as client:
        for number in range(5):
            problem(client.request(f"ODD{number}", "/health"), 405, "method-not-allowed")
        text = client.get("/metrics").text
    assert 'parquetry_http_requests_total{method="other",route="/health",status="405"} 5.0' in text
    assert "ODD" not in text
