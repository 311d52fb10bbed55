"""A fault in every backend call behind a chat is told in OpenAI's form, streamed or not, and never an empty success."""

from __future__ import annotations

import json

import pytest

from tests.servers.model_service import ModelService, call, call_stream, said, text_stream, whole
from tests.serving.chat.conftest import AGENTS, proxy
from tests.serving.http.backend_faults import ERRORS, each_failing

CALLS = [call("search_knowledge", "c1", query="oak table"), call("read_full_document", "c2", path="leave.md")]


def answer(asked):
    """Call both tools, then answer."""
    if not asked.path.endswith("/chat/completions"):
        return whole({"object": "list", "data": []})
    stream = asked.body.get("stream")
    if asked.body["messages"][-1]["role"] != "tool" and asked.body.get("tools"):
        return call_stream(*CALLS, text="One moment.") if stream else said("One moment.", CALLS)
    return text_stream("x", number=2) if stream else said("x")


@pytest.fixture(scope="module")
def app(shelf):
    with ModelService(rule=answer) as service, proxy(shelf, service, agent=AGENTS) as app:
        app.token = app.resources.tokens.create("faults", user_id="ada", rights=["search", "read"])[1]
        yield app


def told_in(response):
    """Return the error that an answer is, or ends with."""
    if response.status_code != 200:
        assert response.status_code >= 500, response.text
        return response.json()["error"]
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    assert lines[-1] != "[DONE]"
    assert not any("rag_sources" in line for line in lines)
    return json.loads(lines[-1])["error"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("model", ["m", "helper"])
def test_fault_in_any_backend_call_of_a_chat_is_told(app, model, kind, stream):
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "How many days of holiday?"}]}
    with app.client(app.token) as client:
        tried = set()
        for failed, response in each_failing(app, lambda: client.post("/v1/chat/completions", json=body), ERRORS[kind]):
            where = (failed, response.status_code, response.text)
            error = told_in(response)
            assert error["type"] == "server_error", where
            assert error["message"], where
            assert "secret detail" not in response.text, where
            tried.add(failed)
        # One search before the model is asked; then a search and a document for its calls.
        assert {("reader.search", 1), ("reader.search", 2), ("reader.texts", 1)} <= tried, tried
        assert client.post("/v1/chat/completions", json=body).is_success


@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/models"), ("GET", "/v1/models/gpt-4o"), ("POST", "/v1/embeddings")]
)
def test_fault_in_any_backend_call_of_what_is_passed_on_is_told(app, method, path, kind):
    with app.client(app.token) as client:
        tried = 0
        body = {"model": "e5", "input": "oak"} if method == "POST" else None
        for failed, response in each_failing(app, lambda: client.request(method, path, json=body), ERRORS[kind]):
            assert told_in(response)["type"] == "server_error", (failed, response.text)
            tried += 1
        assert tried >= 1
