"""Failures of responses: of the model service, of a search, of the request; and clients that leave."""

from __future__ import annotations

import openai
import pytest

from parquetry.model import Access
from parquetry.serving.files.model import VectorStore, new_id, now
from tests.servers.model_service import (
    AskedRequest,
    ModelAnswer,
    ModelService,
    call_stream,
    chunk,
    cut,
    failing,
    said,
    silent,
    streamed,
    text_stream,
    whole,
)
from tests.serving.chat.conftest import proxy
from tests.serving.responses.asking_client import FUNCTION, SEARCHES, TOOL, client_of, create, token_of


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (failing(429, "slow down", code="rate_limit_exceeded"), 429, "rate_limit_exceeded"),
        (failing(404, "no model 'm'", code="model_not_found"), 404, "model_not_found"),
        (failing(401, "wrong key"), 502, "upstream_refused"),
        (failing(500, "broken"), 500, "upstream_failed"),
        (whole(b"{"), 502, "upstream_broken"),
    ],
)
def test_a_failure_before_the_answer_is_an_error(client, service, stream, answer, status, code):
    service.expect(answer)
    with pytest.raises(openai.APIStatusError) as failed:
        create(client, stream)
    assert (failed.value.status_code, failed.value.code) == (status, code)
    assert "sk-own" not in failed.value.response.text


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (cut(text_stream("It costs 640 euros."), 3), "broke off"),
        (
            streamed(chunk({"content": "It"}), b'data: {"error": {"message": "out of memory"}}\n\n', done=False),
            "out of memory",
        ),
        (streamed(chunk({"content": "It"})), "ended its answer"),
        (streamed(chunk({"content": "It"}), b"data: {\n\n"), "no JSON object"),
    ],
)
def test_a_failure_within_a_stream_is_told_in_it(client, service, answer, told):
    service.expect(answer)
    response = create(client, stream=True)
    assert (response.status, response.error.code) == ("failed", "server_error")
    assert told in response.error.message
    assert all(each.status == "incomplete" for each in response.output)


def test_a_failure_after_a_search_is_an_error(client, service):
    service.expect(said(None, [SEARCHES]), failing(500, "broken"))
    with pytest.raises(openai.InternalServerError):
        create(client, tools=[TOOL])


def test_a_client_that_leaves_a_stream_ends_the_request_to_the_model(running, service):
    app, _ = running
    service.gone.clear()
    service.expect(silent(text_stream("It costs 640 euros."), 3))
    body = {"model": "m", "input": "Hi", "stream": True}
    with app.client(token_of(app, "ada")) as client, client.stream("POST", "/v1/responses", json=body) as answer:
        assert next(answer.iter_text()).startswith("event: response.created")
    assert service.gone.wait(120)


def test_a_client_that_leaves_before_the_answer_ends_the_request_to_the_model(running, service):
    app, _ = running
    service.gone.clear()
    service.expect(silent(said("Hi."), 0))
    with pytest.raises(openai.APITimeoutError):
        client_of(app, token_of(app, "ada")).responses.create(model="m", input="Hi", timeout=0.5)
    assert service.gone.wait(120)


def test_a_filter_that_cannot_be_used_is_named(client, service):
    filters = {"type": "and", "filters": [{"type": "like", "key": "a", "value": "b"}]}
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="m", input="Hi", tools=[FUNCTION, {**TOOL, "filters": filters}])
    assert refused.value.body["param"] == "tools[1].filters.filters.0.type"
    assert refused.value.body["message"].startswith("tools[1].filters.filters.0.type")
    assert service.requests == []


def test_what_cannot_be_done_is_refused_in_openais_form(client, service):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="m", input="Hi", background=True)
    assert refused.value.body["param"] == "background"
    assert (refused.value.type, refused.value.code) == ("invalid_request_error", "unsupported_parameter")
    assert service.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_search_that_fails_is_an_error_and_no_empty_success(shelf, stream):
    """The store is gone once the model asks for it."""
    moment = now()
    store = VectorStore(new_id("vs_", moment), "s", "default", Access("public"), moment, moment, None, {})

    def vanish(_: AskedRequest) -> ModelAnswer:
        app.resources.stores.remove(store.id)
        return call_stream(SEARCHES) if stream else said(None, [SEARCHES])

    with ModelService(rule=vanish) as service, proxy(shelf, service) as app:
        app.resources.stores.add(store)
        client, tool = client_of(app, token_of(app, "ada")), {**TOOL, "vector_store_ids": [store.id]}
        if stream:
            response = create(client, stream, tools=[tool])
            assert (response.status, response.output[0].status) == ("failed", "failed")
            assert store.id in response.error.message
        else:
            with pytest.raises(openai.NotFoundError, match=store.id):
                create(client, tools=[tool])
        assert len(service.requests) == 1
