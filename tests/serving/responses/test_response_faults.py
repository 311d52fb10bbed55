"""A fault in every backend call behind responses is told in OpenAI's form, streamed or not, and never an empty success.

Each call is failed by itself, also the second and third of one name: some come before the model is asked, others after.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from parquetry.model import Access
from parquetry.serving.files.model import VectorStore, new_id, now
from tests.servers.model_service import ModelService, call_stream, said, text_stream
from tests.serving.chat.conftest import proxy
from tests.serving.http.backend_faults import ERRORS, Backend, each_failing
from tests.serving.responses.asking_client import SEARCHES, STORE, events_of, token_of
from tests.serving.responses.checks import check_events, check_response, fits_schema

AGENT = {"name": "carpenter", "model": "m", "top_k": 1, "namespaces": ["default"]}
TEXT = "It costs 640 euros [cite:1]."


def answer(asked):
    """Search, then answer."""
    last, stream = asked.body["messages"][-1], asked.body["stream"]
    if last["role"] != "tool" and asked.body.get("tools"):
        return call_stream(SEARCHES) if stream else said(None, [SEARCHES])
    return text_stream(TEXT) if stream else said(TEXT)


@pytest.fixture(scope="module")
def faulty(shelf):
    """Run an application with a store of ada's beside that of the namespace, and a response that she keeps."""
    moment = now()
    store = VectorStore(
        new_id("vs_", moment), "s", "default", Access("individual", user_id="ada"), moment, moment, None, {}
    )
    with ModelService(rule=answer) as service, proxy(shelf, service, agent=[AGENT]) as app:
        app.resources.stores.add(store)
        with app.client(token_of(app, "ada")) as client:
            kept = client.post("/v1/responses", json={"model": "m", "input": "Hi"}).json()["id"]
            yield SimpleNamespace(app=app, client=client, store=store.id, kept=kept)
        app.resources.stores.remove(store.id)


BODIES = {
    "plain": lambda _: {"store": False},
    "stored": lambda _: {},
    "continued": lambda faulty: {"previous_response_id": faulty.kept},
    "searching": lambda faulty: {"tools": [{"type": "file_search", "vector_store_ids": [STORE, faulty.store]}]},
    "agent": lambda _: {"model": "carpenter", "store": False},
}
PATHS = {"retrieve": "/v1/responses/{}", "input items": "/v1/responses/{}/input_items"}


def create(faulty, name, stream):
    asked = {"model": "m", "input": "How much is the oak table?", "stream": stream, **BODIES[name](faulty)}
    return faulty.client.post("/v1/responses", json=asked)


def outcome(response, stream):
    """Return the response that an answer is; None for an error in OpenAI's form."""
    if not response.is_success:
        assert response.status_code >= 500, response.text
        error = response.json()["error"]
        fits_schema(error, "Error")
        assert error["type"] == "server_error"
        assert error["message"]
        return None
    if stream:
        return check_events(events_of(response.text))
    return check_response(json.loads(response.content))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("name", sorted(BODIES))
def test_fault_in_any_backend_call_of_a_response_is_told(faulty, name, kind, stream):
    tried = set()
    for call, response in each_failing(faulty.app, lambda: create(faulty, name, stream), ERRORS[kind]):
        where = (call, response.status_code, response.text)
        assert "secret detail" not in response.text, where
        found = outcome(response, stream)
        if found is not None:
            assert stream, where
            assert (found.status, found.error.code) == ("failed", "server_error"), where
            assert found.error.message, where
            assert all(item.status != "in_progress" for item in found.output), where
        tried.add(call)
    assert len(tried) >= {"plain": 1, "stored": 2, "continued": 3, "searching": 8, "agent": 3}[name], tried
    whole = outcome(create(faulty, name, stream), stream)
    assert (whole.status, whole.output_text) == ("completed", "It costs 640 euros." if name == "searching" else TEXT)


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_fault_in_any_backend_call_about_a_stored_response_is_told(faulty, kind):
    def ask(method, path):
        return lambda: faulty.client.request(method, path.format(faulty.kept))

    for path in PATHS.values():
        calls = list(each_failing(faulty.app, ask("GET", path), ERRORS[kind]))
        assert {call for call, _ in calls} >= {("gate.admit", 1), ("responses.get", 1)}
        for _, response in calls:
            assert outcome(response, stream=False) is None
    deleting = ask("DELETE", PATHS["retrieve"])
    for name in ("gate.admit", "responses.delete"):
        backend = Backend(faulty.app)
        try:
            with backend.failing(name, ERRORS[kind]()):
                assert outcome(deleting(), stream=False) is None, name
        finally:
            backend.restore()
    assert ask("GET", PATHS["retrieve"])().json()["id"] == faulty.kept
