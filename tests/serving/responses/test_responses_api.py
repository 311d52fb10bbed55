"""`/v1/responses` as OpenAI's own client uses it, over sockets, in front of a scripted model service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from parquetry.model import Access
from parquetry.serving.files.model import VectorStore, new_id, now
from parquetry.serving.stores.namespaces import store_id_of
from tests.servers.model_service import (
    AskedRequest,
    ModelAnswer,
    ModelService,
    call,
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
from tests.serving.responses.checks import check_events, check_response, fits_schema

STORE = store_id_of("default")
TOOL = {"type": "file_search", "vector_store_ids": [STORE]}
RESULTS = ["file_search_call.results"]
FUNCTION = {
    "type": "function",
    "name": "get_time",
    "description": "Tell the time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    "strict": False,
}
SEARCHES = call("file_search", queries=["How much is the oak table?"])


@pytest.fixture(scope="module")
def running(shelf) -> Iterator[Any]:
    """Yield the application with its model service."""
    with ModelService() as service, proxy(shelf, service) as app:
        yield app, service


@pytest.fixture
def service(running):
    """Return the model service, whose script is used up at the end of the test."""
    _, found = running
    found.requests.clear()
    yield found
    left, found._script[:] = list(found._script), []
    faults, found.unexpected[:] = list(found.unexpected), []
    assert (left, faults) == ([], [])


@pytest.fixture
def client(running, service):
    """Return ada's client."""
    app, _ = running
    return client_of(app, token_of(app, "ada"))


def client_of(app: Any, key: str, **more: Any) -> openai.OpenAI:
    """Return OpenAI's client with a key."""
    return openai.OpenAI(base_url=f"{app.url}/v1", api_key=key, max_retries=0, timeout=30, **more)


def token_of(app: Any, user: str, *rights: str, **more: Any) -> str:
    """Return a token of a user."""
    _, plain = app.resources.tokens.create(f"for {user}", user_id=user, rights=rights or ("search", "read"), **more)
    return plain


def create(client: openai.OpenAI, stream: bool = False, **fields: Any) -> Response:
    """Return a response, with its form checked, and that of its events."""
    asked = {"model": "m", "input": "How much is the oak table?", **fields}
    fits_schema(asked, "CreateResponse")
    if not stream:
        raw = client.responses.with_raw_response.create(**asked)
        return check_response(json.loads(raw.content))
    with client.responses.with_streaming_response.create(**asked, stream=True) as raw:
        return check_events(events_of(raw.read().decode()))


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream, whose names are their types."""
    found = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def test_an_answer(client, service):
    service.expect(said("Hello."))
    response = create(client, instructions="Be brief.", metadata={"a": "b"})
    assert response.output_text == "Hello."
    assert response.metadata == {"a": "b"}
    assert response.usage.total_tokens == 15
    (asked,) = service.requests
    assert asked.key == "sk-own-key-of-the-service"
    assert [each["content"] for each in asked.body["messages"]] == ["Be brief.", "How much is the oak table?"]


def test_a_streamed_answer(client, service):
    service.expect(text_stream("Hello, you.", usage=(7, 3)))
    response = create(client, stream=True)
    assert (response.output_text, response.usage.total_tokens) == ("Hello, you.", 10)
    assert service.requests[0].body["stream_options"] == {"include_usage": True}


def test_a_search_with_citations(client, service):
    service.expect(said(None, [SEARCHES]), said("It costs 640 euros [cite:1]."))
    response = create(client, tools=[TOOL], include=RESULTS)
    called, message = response.output
    assert (called.type, called.status, called.queries) == (
        "file_search_call",
        "completed",
        ["How much is the oak table?"],
    )
    first = called.results[0]
    assert (first.filename, first.text) == ("oak.txt", "The oak table has four legs and costs 640 euros.")
    assert 0 < first.score <= 1
    assert response.output_text == "It costs 640 euros."
    (annotation,) = message.content[0].annotations
    assert (annotation.file_id, annotation.filename) == (first.file_id, "oak.txt")
    assert response.output_text[: annotation.index] == "It costs 640 euros"
    told = json.loads(service.requests[1].body["messages"][-1]["content"])
    assert told["results"][0]["mark"] == "[cite:1]"
    assert "640 euros" in told["results"][0]["text"]


def test_a_streamed_search_with_citations(client, service):
    service.expect(call_stream(SEARCHES), text_stream("It costs 640 euros [cite:1]. Buy it [cite:1] today."))
    response = create(client, stream=True, tools=[TOOL])
    assert [each.type for each in response.output] == ["file_search_call", "message"]
    assert response.output[0].results is None
    text = "It costs 640 euros. Buy it today."
    assert response.output_text == text
    annotations = response.output[1].content[0].annotations
    assert [text[: each.index] for each in annotations] == ["It costs 640 euros", "It costs 640 euros. Buy it"]


def test_the_clients_own_stream_reads_every_event(client, service):
    service.expect(call_stream(SEARCHES, call("get_time", "call_b", zone="UTC"), text="One moment."))
    with client.responses.stream(model="m", input="Hi", tools=[TOOL, FUNCTION]) as stream:
        kinds = [event.type for event in stream]
        response = stream.get_final_response()
    assert kinds[-1] == "response.completed"
    assert "response.file_search_call.completed" in kinds
    assert [each.type for each in response.output] == ["message", "file_search_call", "function_call"]
    assert response.output[2].arguments == '{"zone": "UTC"}'


def test_a_function_of_the_client_and_the_next_turn(client, service):
    service.expect(said(None, [call("get_time", zone="UTC")]))
    first = create(client, tools=[FUNCTION])
    (called,) = first.output
    service.expect(said("It is noon."))
    output = {"type": "function_call_output", "call_id": called.call_id, "output": "12:00"}
    second = create(client, tools=[FUNCTION], previous_response_id=first.id, input=[output])
    assert second.output_text == "It is noon."
    messages = service.requests[1].body["messages"]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool"]
    assert messages[2] == {"role": "tool", "tool_call_id": called.call_id, "content": "12:00"}
    # Without the server's memory, the client sends everything.
    service.expect(said("It is noon."))
    history = [{"role": "user", "content": "How much is the oak table?"}, *first.output, output]
    client.responses.create(model="m", tools=[FUNCTION], input=history)
    assert service.requests[2].body["messages"] == messages


def test_structured_output(client, service):
    class Price(BaseModel):
        euros: int

    service.expect(said('{"euros": 640}'))
    parsed = client.responses.parse(model="m", input="How much?", text_format=Price)
    assert parsed.output_parsed == Price(euros=640)
    form = service.requests[0].body["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_at_its_limit_is_incomplete(client, service, stream):
    piece = {"index": 0, "message": {"role": "assistant", "content": "It costs"}, "finish_reason": "length"}
    service.expect(
        streamed(chunk({"content": "It costs"}), chunk(finish="length")) if stream else whole({"choices": [piece]})
    )
    response = create(client, stream, max_output_tokens=16)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert response.output_text == "It costs"
    assert service.requests[0].body["max_tokens"] == 16


@pytest.mark.parametrize("stream", [False, True])
def test_a_limit_has_the_name_that_the_model_takes(client, service, stream):
    refused = failing(400, "Unsupported parameter: 'max_tokens' is not supported with this model.")
    answer = text_stream("Hi.") if stream else said("Hi.")
    service.expect(refused, answer, answer)
    for _ in range(2):
        create(client, stream, model=f"reasoner-{stream}", max_output_tokens=16)
    names = [{"max_tokens", "max_completion_tokens"} & each.body.keys() for each in service.requests]
    assert names == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


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
    assert service.gone.wait(30)


def test_a_client_that_leaves_before_the_answer_ends_the_request_to_the_model(running, service):
    app, _ = running
    service.gone.clear()
    service.expect(silent(said("Hi."), 0))
    with pytest.raises(openai.APITimeoutError):
        client_of(app, token_of(app, "ada")).responses.create(model="m", input="Hi", timeout=0.5)
    assert service.gone.wait(30)


def test_the_asynchronous_client(running, service):
    app, _ = running

    async def ask() -> tuple[str, list[str], list[str]]:
        key = token_of(app, "ada")
        async with openai.AsyncOpenAI(base_url=f"{app.url}/v1", api_key=key, max_retries=0) as client:
            whole_answer = await client.responses.create(model="m", input="Hi", tools=[TOOL])
            stream = await client.responses.create(model="m", input="Hi", tools=[TOOL], stream=True)
            events = [event async for event in stream]
            async with client.responses.stream(model="m", input="Hi") as helper:
                pieces = [each.delta async for each in helper if each.type == "response.output_text.delta"]
        return whole_answer.output_text, [each.type for each in events], pieces

    service.expect(said(None, [SEARCHES]), said("640 [cite:1]"), call_stream(SEARCHES), text_stream("640 [cite:1]"))
    service.expect(text_stream("one two"))
    text, kinds, pieces = asyncio.run(ask())
    assert (text, "".join(pieces)) == ("640", "one two")
    assert kinds[-1] == "response.completed"
    assert "response.output_text.annotation.added" in kinds


def test_each_person_finds_and_is_told_their_own(running, service):
    app, _ = running
    asks = call("file_search", queries=["vault word of ada", "vault word of eve"])
    for name, other in (("ada", "eve"), ("eve", "ada")):
        service.expect(said(None, [asks]), said("Here [cite:1]."))
        response = create(client_of(app, token_of(app, name)), tools=[TOOL], include=RESULTS)
        told = response.to_json() + service.requests[-1].content.decode()
        assert f"{name}word" in told
        assert f"{other}word" not in told
        assert f"{other}.md" not in told


def test_a_store_that_is_not_the_callers_is_one_that_does_not_exist(running, service):
    app, _ = running
    elsewhere = client_of(app, token_of(app, "bob", namespaces=("other",)))
    errors = []
    for store_id in (STORE, "vs_ns_" + "0" * 24, "vs_" + "0" * 24):
        with pytest.raises(openai.NotFoundError) as refused:
            create(elsewhere, tools=[{**TOOL, "vector_store_ids": [store_id]}])
        errors.append({**refused.value.body, "message": refused.value.body["message"].replace(store_id, "X")})
    assert errors[0] == errors[1] == errors[2]
    assert service.requests == []


def test_filters_and_limits_hold(client, service):
    asks = call("file_search", queries=["table", "power"])
    service.expect(said(None, [asks]), said("Hm."))
    response = create(client, tools=[{**TOOL, "max_num_results": 1}], include=RESULTS)
    assert len(response.output[0].results) == 1
    service.expect(said(None, [asks]), said("Hm."))
    condition = {"type": "eq", "key": "color", "value": "brown"}
    response = create(client, tools=[{**TOOL, "filters": condition}], include=RESULTS)
    assert response.output[0].results == []
    service.expect(said(None, [asks]), said("Hm."))
    response = create(client, tools=[{**TOOL, "ranking_options": {"score_threshold": 1}}], include=RESULTS)
    assert response.output[0].results == []


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


def test_stored_responses_are_their_owners(running, service):
    app, _ = running
    ada, eve = (client_of(app, token_of(app, name)) for name in ("ada", "eve"))
    service.expect(said("Hello."))
    first = create(ada, input="Hi")
    assert check_response(json.loads(ada.responses.with_raw_response.retrieve(first.id).content)) == first
    (item,) = ada.responses.input_items.list(first.id).data
    assert (item.role, item.content[0].text) == ("user", "Hi")
    for ask in (eve.responses.retrieve, eve.responses.delete, eve.responses.input_items.list, eve.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(first.id)
    with pytest.raises(openai.BadRequestError) as refused:
        create(eve, previous_response_id=first.id)
    assert refused.value.code == "previous_response_not_found"
    with pytest.raises(openai.BadRequestError):
        ada.responses.cancel(first.id)
    ada.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        ada.responses.retrieve(first.id)
    assert len(service.requests) == 1


def test_a_conversation_goes_on_over_stored_responses(client, service):
    service.expect(said(None, [SEARCHES]), said("It costs 640 euros [cite:1]."))
    first = create(client, tools=[TOOL], instructions="Be brief.")
    service.expect(text_stream("You are welcome."))
    second = create(client, stream=True, input="Thanks!", previous_response_id=first.id)
    service.expect(said("Bye."))
    third = create(client, input=[{"role": "user", "content": "Bye!"}], previous_response_id=second.id)
    assert third.previous_response_id == second.id
    # Instructions and results of searches are those of their own turn.
    assert [(each["role"], each["content"]) for each in service.requests[-1].body["messages"]] == [
        ("user", "How much is the oak table?"),
        ("assistant", "It costs 640 euros."),
        ("user", "Thanks!"),
        ("assistant", "You are welcome."),
        ("user", "Bye!"),
    ]


def test_what_is_not_stored_is_gone(client, service):
    service.expect(said("Hello."))
    response = create(client, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_of_one_token_as_many_responses_are_stored_as_the_settings_say(shelf):
    answers = [said(f"Hello {number}.") for number in range(3)]
    with ModelService(*answers) as service, proxy(shelf, service, upstream={"max_responses": 2}) as app:
        client = client_of(app, token_of(app, "ada"))
        first, *others = [create(client, input="Hi").id for _ in answers]
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(first)
        assert [client.responses.retrieve(each).id for each in others] == others


def test_an_anonymous_callers_response_is_not_stored(running, service):
    """It could not be told from that of another one."""
    app, _ = running
    anonymous = client_of(app, "sk-of-somebody")
    service.expect(said(None, [SEARCHES]), said("Hello."))
    response = create(anonymous, tools=[TOOL], include=RESULTS)
    assert service.requests[0].key == "sk-of-somebody"
    assert "word" not in response.to_json()
    with pytest.raises(openai.NotFoundError):
        anonymous.responses.retrieve(response.id)
    with pytest.raises(openai.BadRequestError) as refused:
        create(anonymous, store=True)
    assert refused.value.body["param"] == "store"


def test_no_token_of_ours_reaches_the_model_service(running, service):
    app, _ = running
    token = token_of(app, "ada")
    service.expect(said(None, [SEARCHES]), said("Hello."))
    create(client_of(app, "sk-mine", default_headers={"X-Parquetry-Token": token}), tools=[TOOL])
    assert len(service.requests) == 2
    assert all(b"pqt_" not in each.everything and each.key == "sk-mine" for each in service.requests)
    with pytest.raises(openai.BadRequestError) as refused:
        create(client_of(app, token), input=f"My token is {token}.")
    assert refused.value.code == "token_would_leave"


def test_a_token_without_the_right_to_search_is_refused(running, service):
    app, _ = running
    with pytest.raises(openai.PermissionDeniedError):
        create(client_of(app, token_of(app, "ada", "write")))
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


AGENT = {"name": "carpenter", "model": "m", "system_prompt": "You sell tables.", "top_k": 1}


def test_an_agent_answers_with_its_prompt_and_documents(shelf):
    with ModelService(said("640.")) as service, proxy(shelf, service, agent=[AGENT]) as app:
        response = create(client_of(app, token_of(app, "ada")), model="carpenter", instructions="Be brief.")
        assert (response.model, response.output_text) == ("carpenter", "640.")
        body = service.requests[0].body
        assert body["model"] == "m"
        system, question = body["messages"]
        assert system["content"].startswith("Be brief.\n\nYou sell tables.")
        assert "640 euros" in system["content"]
        assert question == {"role": "user", "content": "How much is the oak table?"}
        assert "tools" not in body


NATIVE = {"id": "resp_theirs", "object": "response", "output": []}


def native(asked: AskedRequest) -> ModelAnswer | None:
    """Answer as a model service that has responses of its own."""
    if asked.path == "/v1/responses":
        return whole({**NATIVE, "model": asked.body["model"]})
    if asked.path.startswith("/v1/responses/resp_theirs"):
        return whole({"id": "resp_theirs", "object": "response.deleted", "deleted": True})
    return said("Translated.") if asked.path == "/v1/chat/completions" else None


def test_a_model_service_with_responses_of_its_own_gets_them_as_they_are(shelf):
    with ModelService(rule=native) as service, proxy(shelf, service, upstream={"native_responses": True}) as app:
        ada, root = (client_of(app, token_of(app, *rights)) for rights in (("ada", "search"), ("root", "admin")))

        def asked(client: openai.OpenAI, **fields: Any) -> list[str]:
            service.requests.clear()
            response = client.responses.create(model="m", input="Hi", **fields)
            assert response.id == "resp_theirs" or response.output_text == "Translated."
            return [each.path for each in service.requests]

        theirs, ours = ["/v1/responses"], ["/v1/chat/completions"]
        assert asked(ada, store=False, tools=[{"type": "web_search"}]) == theirs
        assert service.requests[0].body["tools"] == [{"type": "web_search"}]
        # What is kept under the key of the service would be everybody's.
        assert asked(ada) == ours
        assert asked(root) == theirs
        assert asked(root, previous_response_id="resp_theirs") == theirs
        assert asked(client_of(app, "sk-mine"), background=True) == theirs
        assert asked(ada, store=False, tools=[TOOL]) == ours
        # A conversation stays where it began.
        first = ada.responses.create(model="m", input="Hi")
        assert asked(ada, store=False, previous_response_id=first.id) == ours
        root.responses.delete("resp_theirs")
        assert ada.responses.retrieve(first.id).id == first.id
        with pytest.raises(openai.PermissionDeniedError):
            ada.responses.retrieve("resp_theirs")
