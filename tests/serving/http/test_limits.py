"""Bodies have a size and a time, answers have tags, and metrics count what was asked."""

import json
import socket
import time

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.checks import ok, problem
from tests.workshop import Workshop


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("limits"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    serve = {"max_body_bytes": 20_000, "max_document_bytes": 5_000, "body_seconds": 1.0, "requests_per_minute": 600}
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": serve}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def raw(app, request):
    """Send bytes to the application; return what it answers first."""
    host, port = app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        return connection.recv(65_536)


def test_declared_body_that_is_too_large_is_refused_at_once(app):
    head = b"POST /api/knowledge/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    assert b" 413 " in raw(app, head).splitlines()[0]


def test_body_is_counted_whatever_its_headers_say(app):
    def chunks():
        for _ in range(100):
            yield b"x" * 1_000

    with app.client() as client:
        problem(client.post("/api/knowledge/documents", content=chunks()), 413, "too-large")


def test_slow_body_is_given_up(app):
    head = b"POST /api/knowledge/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    started = time.monotonic()
    assert b" 408 " in raw(app, head).splitlines()[0]
    assert time.monotonic() - started >= 1


def test_huge_header_is_refused(app):
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n"
    answer = raw(app, head)
    assert any(status in answer.splitlines()[0] for status in (b" 400 ", b" 431 "))


def test_document_that_is_too_large_is_refused(app):
    with app.client() as client:
        sent = {"content": "x" * 6_000, "filename": "a.md"}
        problem(client.post("/api/knowledge/documents", json=sent), 413, "too-large")
        files = {"file": ("a.txt", b"x" * 6_000, "text/plain")}
        problem(client.post("/api/knowledge/documents", files=files), 413, "too-large")
        documents = {"documents": [{"text": "x" * 6_000}]}
        problem(client.post("/api/v1/knowledge/default/documents", json=documents), 413, "too-large")


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x=1", "../../etc/passwd", "a\x00b", "‮fdp.exe", "x" * 1024])
def test_hostile_names_reach_no_header(app, name):
    with app.client() as client:
        response = client.get(f"/api/v1/jobs/{'job-' + 'a' * 20}", headers={"X-Parquetry-Namespace": "a.b"})
        assert "set-cookie" not in response.headers
        response = client.get("/api/knowledge/stats", params={"namespace": name})
        assert response.status_code in (200, 404, 422)
        assert "set-cookie" not in response.headers


def test_deeply_nested_json_is_refused(app):
    nested = b'{"content": "x", "filename": "a.md", "metadata": {"a": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}"
    with app.client() as client:
        response = client.post("/api/knowledge/documents", content=nested, headers={"content-type": "application/json"})
        problem(response, 422, "invalid-request")


def test_answer_that_has_not_changed_is_not_sent_again(app):
    with app.client() as client:
        first = client.get("/api/knowledge/documents")
        tag = first.headers["etag"]
        again = client.get("/api/knowledge/documents", headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        other = client.get("/api/knowledge/documents", headers={"If-None-Match": '"other"'})
        assert ok(other) == ok(first)
        assert "Authorization" in first.headers["vary"]


def test_metrics_and_audit_count_searches_and_keep_no_text(app):
    with app.client() as client:
        ok(client.get("/api/knowledge/search", params={"q": "secret oak table"}))
        ok(client.post("/api/v1/knowledge/default/retrieve", json={"query": "secret oak table"}))
        text = client.get("/metrics").text
    for name in (
        'parquetry_knowledge_chunks_retrieved_total{provider="parquetry",store_type="duckdb"}',
        "parquetry_knowledge_retrieval_score_bucket",
        'parquetry_http_requests_total{method="GET",route="/api/knowledge/search",status="200"} 1.0',
        "parquetry_corpus_version 1.0",
    ):
        assert name in text
    assert "secret" not in text
    lines = (app.resources.state / "audit.jsonl").read_text()
    assert "secret" not in lines
    retrieved = [event for event in map(json.loads, lines.splitlines()) if event["event"] == "knowledge.retrieve"]
    assert len(retrieved) == 2
    assert retrieved[0]["namespace"] == "default"
    assert retrieved[0]["milliseconds"] > 0
