"""Each chat, response and question leaves one event: answered, failed for a reason, or left by its caller."""

import json
import socket
import time

import pytest

from parquetry.errors import StorageError
from tests.servers.model_service import chunk, cut, failing, said, silent, streamed, text_stream
from tests.serving.http.backend_faults import Backend

pytestmark = pytest.mark.slow

QUESTION = "How many days of holiday?"


def outcome(event):
    return event["event"], event["status"], event["reason"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_chat_that_is_answered(ask, model, events, stream):
    model.expect(text_stream("Thirty.") if stream else said("Thirty."))
    assert ask(token="ada", stream=stream).is_success
    (event,) = events()
    assert outcome(event) == ("knowledge.query", 200, None)
    assert (event["user_id"], event["namespace"], event["queries"], event["chunks"]) == ("ada", "default", 1, 3)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_chat_that_the_model_service_refuses(ask, model, events, stream):
    model.expect(failing(429, "slow down"))
    assert ask(token="ada", stream=stream).status_code == 429
    (event,) = events()
    assert outcome(event) == ("knowledge.query", 429, "upstream-failed")
    assert (event["user_id"], event["namespace"], event["queries"], event["chunks"]) == ("ada", "default", 1, None)
    assert event["text"] is None


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(StorageError("no such bucket"), 503, "storage-failed"), (RuntimeError("secret"), 500, "unexpected")],
)
def test_a_chat_whose_search_fails(running, ask, model, events, error, status, reason):
    backend = Backend(running.app)
    try:
        with backend.failing("reader.search", error):
            assert ask(token="ada").status_code == status
    finally:
        backend.restore()
    (event,) = events()
    assert outcome(event) == ("knowledge.query", status, reason)
    assert model.requests == []


def test_a_chat_about_a_namespace_that_does_not_exist(ask, model, events):
    assert ask(token="hr", rag_namespace="default").status_code == 404
    (event,) = events()
    assert outcome(event)[:2] == ("knowledge.query", 404)
    assert event["namespace"] is None


def test_a_stream_that_breaks_off(ask, model, events):
    model.expect(cut(text_stream("Thirty days."), 2))
    assert '"error"' in ask(token="ada", stream=True).text
    (event,) = events()
    assert outcome(event) == ("knowledge.query", 502, "upstream-cut")
    assert event["chunks"] == 3


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": QUESTION}]}),
        ("responses", {"input": QUESTION, "store": False}),
    ],
    ids=["chat", "response"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_caller_who_leaves(running, model, events, path, asked, stream):
    begun = streamed(chunk({"role": "assistant", "content": "Thirty"}), chunk({"content": " days"}))
    model.expect(silent(begun if stream else said("x"), 2 if stream else 0))
    body = json.dumps({"model": "m", "stream": stream, **asked}).encode()
    host, port = running.app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        head = f"POST /v1/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.tokens['ada']}\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        while stream and b"Thirty" not in received:
            received += client.recv(4096)
        while not model.requests:
            time.sleep(0.01)
    assert model.gone.wait(120)
    (event,) = events()
    assert outcome(event) == ("knowledge.query", 499, None)
    assert event["user_id"] == "ada"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (lambda stream: text_stream("Thirty.") if stream else said("Thirty."), 200, None),
        (lambda stream: failing(429, "slow down"), 429, "upstream-failed"),
        (
            lambda stream: cut(text_stream("Thirty days.") if stream else said("x"), 2 if stream else 0),
            502,
            "upstream-cut",
        ),
    ],
    ids=["answered", "refused", "cut"],
)
def test_a_response(running, model, events, stream, answer, status, reason):
    model.expect(answer(stream))
    with running.app.client(running.tokens["ada"]) as client:
        response = client.post(
            "/v1/responses", json={"model": "m", "input": QUESTION, "stream": stream, "store": False}
        )
    assert (response.status_code == 200) is (status == 200 or (stream and reason == "upstream-cut"))
    (event,) = events()
    assert outcome(event) == ("knowledge.query", status, reason)


def test_a_question_without_a_language_model(running, events):
    with running.app.client(running.tokens["ada"]) as client:
        assert client.post("/api/v1/knowledge/default/query", json={"question": QUESTION}).status_code == 501
    (event,) = events()
    assert outcome(event) == ("knowledge.query", 501, "no-language-model")
    assert event["queries"] == 1
