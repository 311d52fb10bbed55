"""`/v1/responses` as OpenAI's own client uses it, over sockets, in front of a scripted model service."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.servers.model_service import (
    AskedRequest,
    ModelAnswer,
    ModelService,
    call,
    call_stream,
    chunk,
    failing,
    said,
    streamed,
    text_stream,
    whole,
)
from tests.serving.chat.conftest import proxy
from tests.serving.responses.asking_client import FUNCTION, RESULTS, SEARCHES, TOOL, client_of, create, token_of

AGENT = {"name": "carpenter", "model": "m", "system_prompt": "You sell tables.", "top_k": 1}
NATIVE = {"id": "resp_theirs", "object": "response", "output": []}


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
