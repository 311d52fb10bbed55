"""Clients that people use: the official one, sync and async, LiteLLM's and LangChain's, over a real socket."""

import asyncio
import os

import openai
import pytest

from tests.servers.model_service import call, call_stream, cut, failing, said, text_stream

MESSAGES = [{"role": "user", "content": "How many days of holiday?"}]
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object", "properties": {}}},
}


@pytest.fixture
def client(running):
    with openai.OpenAI(base_url=f"{running.app.url}/v1", api_key=running.tokens["ada"], max_retries=0) as client:
        yield client


def test_official_client_whole_and_streamed(client, model):
    model.expect(said("Thirty."), text_stream("Thirty days.", usage=(10, 5)))
    answer = client.chat.completions.create(model="helper", messages=MESSAGES, extra_body={"rag_top_k": 1})
    assert answer.choices[0].message.content == "Thirty."
    assert answer.rag_sources[0]["source"] == "leave.md"
    stream = client.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}, extra_body={"rag_top_k": 1}
    )
    chunks = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "Thirty days."
    assert chunks[-2].rag_sources[0]["path"] == "leave.md"
    assert chunks[-1].usage.total_tokens == 15


def test_official_client_with_tools_of_its_own_and_of_the_proxy(client, model):
    ours, theirs = call("read_full_document", "r1", path="leave.md"), call("get_weather", "w1", city="Oslo")
    model.expect(call_stream(ours), call_stream(theirs, number=2), text_stream("Done.", number=3))
    with client.chat.completions.stream(model="m", messages=MESSAGES, tools=[WEATHER]) as stream:
        first = stream.get_final_completion()
    message = first.choices[0].message
    (wanted,) = message.tool_calls
    assert (wanted.id, wanted.function.name) == ("w1", "get_weather")
    assert first.choices[0].finish_reason == "tool_calls"
    told = {"role": "tool", "tool_call_id": "w1", "content": "rain"}
    follow = [
        *MESSAGES,
        {"role": "assistant", "tool_calls": [wanted.model_dump(exclude={"function": {"parsed_arguments"}})]},
        told,
    ]
    with client.chat.completions.stream(model="m", messages=follow, tools=[WEATHER]) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Done."


def test_official_client_sees_failures_as_its_own_errors(client, model):
    model.expect(failing(429, "slow down", code="rate_limit_exceeded"), cut(text_stream("Thirty days"), 2))
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="m", messages=MESSAGES)
    stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    with pytest.raises(openai.APIError, match=r"in the middle|broke off"):
        list(stream)
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="m", messages=MESSAGES, extra_body={"rag_mode": "odd"})
    assert refused.value.param == "rag_mode"


def test_official_async_client(running, model):
    model.expect(said("Thirty."), call_stream(call("search_knowledge", query="oak")), text_stream("Oak.", number=2))

    async def talk():
        async with openai.AsyncOpenAI(base_url=f"{running.app.url}/v1", api_key="sk-foreign", max_retries=0) as client:
            whole = await client.chat.completions.create(model="m", messages=MESSAGES)
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            return whole, [each async for each in stream]

    whole, chunks = asyncio.run(talk())
    assert whole.choices[0].message.content == "Thirty."
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "Oak."
    assert [each["source"] for each in chunks[-1].rag_sources][:1] == ["leave.md"]


def test_official_client_lists_models_and_embeds(client, running, model):
    from tests.servers.model_service import whole

    model.rule = lambda asked: whole({"object": "list", "data": []})
    assert next(iter(client.models.list())).id == "helper"
    assert client.models.retrieve("helper").owned_by == "parquetry"
    vectors = client.embeddings.create(model="wordllama", input=["holiday", "oak"]).data
    assert [len(each.embedding) for each in vectors] == [256, 256]


@pytest.mark.slow
def test_litellm(running, model, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm")
    model.expect(said("Thirty."), text_stream("Thirty days."))
    place = {"api_base": f"{running.app.url}/v1", "api_key": "sk-foreign", "num_retries": 0}
    answer = litellm.completion(model="openai/m", messages=MESSAGES, **place)
    assert answer.choices[0].message.content == "Thirty."
    stream = litellm.completion(model="openai/m", messages=MESSAGES, stream=True, **place)
    assert "".join(each.choices[0].delta.content or "" for each in stream) == "Thirty days."
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


@pytest.mark.slow
def test_langchain(running, model):
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    model.expect(said("Thirty."), call_stream(call("search_knowledge", query="oak")), text_stream("Oak.", number=2))
    place = {"base_url": f"{running.app.url}/v1", "api_key": "sk-foreign", "max_retries": 0}
    chat = ChatOpenAI(model="m", **place)
    assert chat.invoke("How many days of holiday?").content == "Thirty."
    assert "".join(each.content for each in chat.stream("oak?")) == "Oak."
    embeddings = OpenAIEmbeddings(model="wordllama", check_embedding_ctx_length=False, **place)
    assert len(embeddings.embed_query("holiday")) == 256
