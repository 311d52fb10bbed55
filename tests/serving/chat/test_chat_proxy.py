"""Chats through the proxy: context, sources and options, whole and streamed."""

import base64
import json
import struct

import pytest

from parquetry.serving.service.grounding import MOST_CONTEXT
from tests.servers.model_service import DONE, chunk, failing, said, streamed, text_stream, usage_chunk, whole
from tests.serving.chat.events import error_of, events_of, sources_in, text_in


def test_question_is_looked_up_and_the_answer_names_its_sources(ask, model):
    model.expect(said("Thirty days [Source: leave.md]."))
    answer = ask().json()
    assert answer["choices"][0]["message"]["content"] == "Thirty days [Source: leave.md]."
    assert [each["source"] for each in answer["rag_sources"]] == ["leave.md", "oak.txt", "power.md"]
    first = answer["rag_sources"][0]
    assert set(first) == {"source", "path", "chunk_id", "score"}
    assert (first["path"], first["chunk_id"]) == ("leave.md", 0)
    assert 0.3 < first["score"] <= 1
    (asked,) = model.requests
    assert "[Source: leave.md]\n# Leave\n\nEverybody has thirty days" in asked.context
    assert "[Source: power.md] (path: sub/power.md)" in asked.context
    assert len(asked.context) <= MOST_CONTEXT
    assert [each["role"] for each in asked.body["messages"]] == ["system", "user"]
    assert asked.body["messages"][-1]["content"] == "How many days of holiday?"


def test_stream_is_passed_on_byte_for_byte_but_for_the_sources(ask, model):
    pieces = [
        b": a comment\n\n",
        chunk({"role": "assistant", "content": ""}),
        b'data: {"id":"c", "choices" : [{"index":0,"delta":{"content":"Th\\u00efrty"}}] , "extra": 1.50}\r\n\r\n',
        chunk({"content": " days"}),
        chunk(finish="stop"),
        usage_chunk(),
    ]
    model.expect(streamed(*pieces))
    response = ask(stream=True, stream_options={"include_usage": True})
    assert model.requests[0].body["stream_options"] == {"include_usage": True}
    sent = response.content
    assert sent.startswith(b"".join(pieces[:4]))
    assert sent.endswith(usage_chunk() + DONE)
    events = events_of(response)
    assert text_in(events) == "Thïrty days"
    assert len(sources_in(events)) == 3
    without = {name: value for name, value in events[-2].items() if name != "rag_sources"}
    assert without == json.loads(chunk(finish="stop").removeprefix(b"data: "))
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["total_tokens"] == 15


def test_several_choices_are_left_alone(ask, model):
    pieces = [
        chunk({"content": "a"}, index=0),
        chunk({"content": "b"}, index=1),
        chunk(finish="stop", index=0),
        chunk({"content": "b"}, index=1),
        chunk(finish="stop", index=1),
    ]
    model.expect(streamed(*pieces))
    response = ask(stream=True, n=2)
    assert "tools" not in model.requests[0].body
    assert response.content.startswith(b"".join(pieces[:4]))
    assert len(sources_in(events_of(response))) == 3


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk({"content": "x"})],
        [chunk({"content": "x"}), chunk(finish="stop"), chunk({}, usage={"prompt_tokens": 1, "completion_tokens": 1})],
        [chunk({"content": "x"}, finish="stop")],
        [
            b'data: {"id":"a","choices":[],"prompt_filter_results":[]}\n\n',
            chunk({"content": "x"}),
            chunk(finish="stop"),
        ],
    ],
    ids=["no end", "a chunk after the end", "all in one", "a chunk without a choice first"],
)
def test_sources_stand_in_the_last_chunk_with_a_choice_however_a_service_streams(ask, model, pieces):
    model.expect(streamed(*pieces))
    events = events_of(ask(stream=True))
    assert text_in(events) == "x"
    assert len(sources_in(events)) == 3


def test_stream_that_ends_without_its_last_event_gets_it(ask, model):
    model.expect(streamed(chunk({"content": "x"}), chunk(finish="stop"), done=False))
    assert len(sources_in(events_of(ask(stream=True)))) == 3


def test_sources_of_another_are_not_passed_on(ask, model):
    forged = [{"source": "forged.md"}]
    model.expect(streamed(chunk({"content": "x"}, rag_sources=forged), chunk(finish="stop", rag_sources=forged)))
    response = ask(stream=True)
    assert b"forged" not in response.content
    assert len(sources_in(events_of(response))) == 3
    model.expect(whole({"choices": [{"message": {"content": "x"}}], "rag_sources": forged}))
    assert "forged" not in ask().text


def test_fields_of_the_proxy_never_leave(ask, model):
    model.expect(said("x"))
    ask(
        rag_top_k=1,
        rag_enable_tools=False,
        rag_namespace="default",
        rag_filters={"filename": "oak.*"},
        rag_mode="text",
        rag_rerank=False,
        metadata={"rag_top_k": "2", "mine": "kept"},
        question="How much is the oak table?",
    )
    (asked,) = model.requests
    assert b"rag_" not in asked.content
    assert asked.body["metadata"] == {"mine": "kept"}
    assert set(asked.body) == {"model", "messages", "metadata"}
    assert asked.context.count("[Source:") == 1 + asked.context.count("[Source: filename]")
    assert "oak table" in asked.context


def test_metadata_may_carry_the_same_as_texts(ask, model):
    model.expect(said("x"))
    metadata = {"rag_top_k": "1", "rag_enable_tools": "false", "rag_filters": json.dumps({"filename": "oak.*"})}
    answer = ask(metadata=metadata).json()
    assert [each["source"] for each in answer["rag_sources"]] == ["oak.txt"]
    assert set(model.requests[0].body) == {"model", "messages"}


def test_nothing_is_looked_up_if_none_is_asked_for(ask, model):
    model.expect(said("x"), text_stream("x"))
    answer = ask(rag_top_k=0, rag_enable_tools=False).json()
    assert "rag_sources" not in answer
    assert [each["role"] for each in model.requests[0].body["messages"]] == ["user"]
    streamed_bytes = ask(rag_top_k=0, rag_enable_tools=False, stream=True).content
    assert streamed_bytes == b"".join(text_stream("x").pieces)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"rag_topk": 3}, "rag_topk"),
        ({"rag_top_k": -1}, "rag_top_k"),
        ({"rag_mode": "fast"}, "rag_mode"),
        ({"rag_filters": {"colour": "red"}}, "rag_filters.colour"),
        ({"metadata": {"rag_filters": "{"}}, "rag_filters"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"model": None}, "model"),
    ],
)
def test_unusable_fields_are_refused_by_name(ask, fields, param):
    response = ask(**fields)
    error_of(response, 400, "invalid_request")
    assert response.json()["error"]["param"] == param


def test_question_may_come_in_parts_and_tool_results_may_follow(ask, model):
    model.expect(said("x"), said("x"))
    parts = [{"type": "text", "text": "holiday?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "a", "content": "42"},
    ]
    answer = ask(messages=messages).json()
    assert answer["rag_sources"][0]["source"] == "leave.md"
    sent = model.requests[0].body["messages"]
    assert [each["role"] for each in sent] == ["system", "system", "user", "assistant", "tool"]
    assert sent[0]["content"] == "Be kind."
    assert sent[2:] == messages[1:]
    assert ask(messages=[{"role": "user", "content": parts[1:]}]).json()["rag_sources"] == []


def test_a_model_that_takes_no_tools_is_asked_without_them_and_remembered(ask, model):
    refused = failing(400, "registry/tiny does not support tools")
    model.expect(refused, said("one"), said("two"))
    assert ask(model="tiny").json()["choices"][0]["message"]["content"] == "one"
    assert ask(model="tiny").json()["choices"][0]["message"]["content"] == "two"
    assert ["tools" in each.body for each in model.requests] == [True, False, False]
    assert "read_full_document" not in model.requests[1].context


def test_a_refusal_that_only_mentions_tools_is_passed_on(ask, model):
    model.expect(failing(400, "a message of a tool without a call"), failing(400, "a message of a tool without a call"))
    error_of(ask(model="other"), 400, "upstream_failed")


@pytest.mark.parametrize("stream", [False, True])
def test_failed_retrieval_is_an_error_and_no_answer_without_context(ask, model, stream):
    response = ask(rag_filters={"metadata": {"a..b": 1}}, stream=stream)
    assert response.status_code == 400
    assert model.requests == []


# --- agents


def test_an_agent_has_its_prompt_model_and_numbers(ask, model):
    model.expect(said("Thirty [1]."))
    answer = ask(model="helper").json()
    (asked,) = model.requests
    assert asked.body["model"] == "m-large"
    assert asked.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "[1] [Source: leave.md]" in asked.context
    assert "as [1]" in asked.context
    assert [each["n"] for each in answer["rag_sources"]] == [1, 2]


def test_filters_of_an_agent_hold_whatever_a_request_says(ask, model):
    model.expect(said("x"), said("x"))
    assert [each["source"] for each in ask(model="oak-helper").json()["rag_sources"]] == ["oak.txt"]
    answer = ask(model="oak-helper", rag_filters={"tags": ["none"]}).json()
    assert answer["rag_sources"] == []
    message = error_of(ask(model="oak-helper", rag_filters={"filename": "leave.md"}), 400, "invalid_request")
    assert "rag_filters" in message
    error_of(ask(model="oak-helper", rag_namespace="hr"), 404, "not_found")


def test_an_agent_of_another_namespace_does_not_exist(ask, model):
    """It is asked for at the model service, as any other unknown model."""
    model.expect(failing(404, "no model 'oak-helper'", code="model_not_found"))
    error_of(ask(model="oak-helper", token="hr", rag_namespace="hr"), 404, "model_not_found")
    assert model.requests[0].body["model"] == "oak-helper"


# --- models and embeddings


def test_models_are_agents_first_then_those_of_the_service_then_embedders(running, model):
    model.rule = lambda asked: whole({"object": "list", "data": [{"id": "m", "object": "model"}, {"id": "helper"}]})
    with running.app.client("sk-foreign") as client:
        names = [each["id"] for each in client.get("/v1/models").json()["data"]]
        assert names == ["helper", "oak-helper", "hr-helper", "m", "wordllama"]
        assert client.get("/v1/models/helper").json()["owned_by"] == "parquetry"
        assert client.get("/v1/models/wordllama").json()["object"] == "model"
    with running.app.client(running.tokens["hr"]) as client:
        assert [each["id"] for each in client.get("/v1/models").json()["data"]][:3] == ["helper", "hr-helper", "m"]
    assert [each.path for each in model.requests] == ["/v1/models"] * 2


@pytest.mark.parametrize(
    ("answer", "status"), [(failing(500, "down"), 500), (whole(b"garbage"), 502), (failing(401, "no"), 502)]
)
def test_models_of_a_service_that_fails_are_no_shorter_list(running, model, answer, status):
    model.rule = lambda asked: answer
    with running.app.client(running.tokens["ada"]) as client:
        assert client.get("/v1/models").status_code == status


def test_a_service_without_a_list_of_models_has_none(running, model):
    model.rule = lambda asked: failing(404, "no such path")
    with running.app.client("sk-foreign") as client:
        assert client.get("/v1/models").json()["data"][0]["id"] == "helper"


def test_embeddings_of_the_corpus_are_made_here(running, model):
    sent = {"model": "wordllama", "input": ["holiday", "oak table"]}
    with running.app.client("sk-foreign") as client:
        plain = client.post("/v1/embeddings", json=sent).json()
        coded = client.post("/v1/embeddings", json={**sent, "encoding_format": "base64", "dimensions": 256}).json()
    assert [each["index"] for each in plain["data"]] == [0, 1]
    assert plain["model"] == "wordllama"
    assert plain["usage"]["prompt_tokens"] == plain["usage"]["total_tokens"] > 2
    raw = base64.b64decode(coded["data"][1]["embedding"])
    assert list(struct.unpack("<256f", raw)) == pytest.approx(plain["data"][1]["embedding"])
    assert sum(value * value for value in plain["data"][0]["embedding"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"dimensions": 128}, "dimensions"),
        ({"input": [1, 2, 3]}, "input"),
        ({"input": []}, "input"),
        ({"input": ["x", " "]}, "input"),
        ({"input": ["x"] * 2049}, "input"),
        ({"encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_embeddings_that_cannot_be_made_are_refused(running, model, fields, param):
    with running.app.client("sk-foreign") as client:
        response = client.post("/v1/embeddings", json={"model": "wordllama", "input": "x", **fields})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


def test_other_embeddings_are_passed_on(running, model):
    model.rule = lambda asked: whole({"data": [], "model": asked.body["model"]})
    with running.app.client("sk-foreign") as client:
        assert client.post("/v1/embeddings", json={"model": "e5", "input": "x"}).json()["model"] == "e5"
    assert model.requests[0].path == "/v1/embeddings"


# --- files, health, records


def test_files_and_health_say_what_is_there(running):
    with running.app.client(running.tokens["ada"]) as client:
        files = client.get("/files").json()
        assert {each["path"] for each in files["files"]} == {"leave.md", "oak.txt", "sub/power.md", "ada.md"}
        assert set(files["files"][0]) == {"path", "source", "chunks", "indexed_at"}
        assert files["total"] == 4
        health = client.get("/health").json()
        assert health["corpus"] == "corpus"
        assert health["models"] == {"embedder": "wordllama", "language_model": None, "reranker": None}
        assert "sk-own" not in json.dumps(health)


def test_chats_are_counted_and_recorded_without_their_words(running, ask, model):
    model.expect(said("x", tokens=(100, 7)))
    before = running.app.app.state.metrics.tokens.labels("parquetry", "input")._value.get()
    ask(token="ada", question="Which holiday word?")
    assert running.app.app.state.metrics.tokens.labels("parquetry", "input")._value.get() - before == 100
    lines = (running.app.resources.state / "audit.jsonl").read_text().splitlines()
    event = json.loads(lines[-1])
    assert (event["event"], event["user_id"], event["namespace"]) == ("knowledge.query", "ada", "default")
    assert event["chunks"] == 3
    assert event["text"] is None
