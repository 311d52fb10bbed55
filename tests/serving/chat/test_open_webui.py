"""Requests of a real Open WebUI: models, chats, files, tasks, embeddings, responses, MCP."""

from types import SimpleNamespace

import pytest

from tests.servers.model_service import ModelService, call, call_stream, said, text_stream, whole
from tests.serving.chat import open_webui
from tests.serving.chat.conftest import proxy
from tests.serving.chat.events import events_of, sources_in, text_in
from tests.serving.responses.asking_client import events_of as response_events
from tests.serving.responses.checks import check_events

AGENTS = [
    {"name": "handbook", "model": "llama3.2"},
    {"name": "tasks", "model": "llama3.2", "top_k": 0, "tools": []},
]


@pytest.fixture(scope="module")
def lab(shelf):
    with ModelService() as service, proxy(shelf, service, agent=AGENTS) as app:
        token = app.resources.tokens.create("Open WebUI")[1]
        with app.client(token, **open_webui.HEADERS) as client:
            yield SimpleNamespace(app=app, client=client, service=service, token=token)


@pytest.fixture
def model(lab):
    lab.service.forget()
    yield lab.service
    lab.service.check()


def send(lab, body, path="chat/completions"):
    response = lab.client.post(f"/v1/{path}", json=body)
    assert response.status_code == 200, response.text
    return response


def test_models_begin_with_the_agents_and_have_what_the_list_shows(lab, model):
    model.rule = lambda asked: whole(
        {"object": "list", "data": [{"id": "llama3.2", "object": "model", "created": 1, "owned_by": "library"}]}
    )
    listed = lab.client.get("/v1/models").json()
    assert [each["id"] for each in listed["data"]] == ["handbook", "tasks", "llama3.2", "wordllama"]
    assert all({"id", "object", "created", "owned_by"} <= set(each) for each in listed["data"])


def test_chat_with_tools_of_its_own_is_streamed_with_sources(lab, model):
    model.expect(text_stream("Thirty days.", usage=(10, 5)))
    events = events_of(send(lab, open_webui.chat()))
    assert text_in(events) == "Thirty days."
    assert sources_in(events)[0]["source"] == "leave.md"
    assert events[-1]["usage"]["total_tokens"] == 15
    offered = [each["function"]["name"] for each in model.requests[0].body["tools"]]
    assert offered == [*open_webui.TOOL_NAMES, "read_full_document", "search_knowledge"]


def test_a_call_of_its_own_tool_comes_back_to_it_and_the_chat_goes_on(lab, model):
    wanted = call("parquetry_search_knowledge", "call_1", query="oak table")
    model.expect(call_stream(wanted), text_stream("640 euros."))
    body = open_webui.chat("What does the oak table cost?", before='MCP server "parquetry" instructions:\nAsk it.')
    body["tools"].append(open_webui.tool("parquetry_search_knowledge"))
    first = events_of(send(lab, body))
    assert first[-1]["choices"][0]["finish_reason"] == "tool_calls"
    parts = [part for each in first for part in each["choices"][0]["delta"].get("tool_calls") or ()]
    assert "".join(each["function"].get("arguments", "") for each in parts) == wanted["function"]["arguments"]
    # An empty text beside the calls, as it sends them.
    body["messages"] += [
        {"role": "assistant", "content": "", "tool_calls": [wanted]},
        {"role": "tool", "tool_call_id": "call_1", "content": "[1] oak.txt\n> The oak table costs 640 euros."},
    ]
    assert text_in(events_of(send(lab, body))) == "640 euros."
    assert [each["role"] for each in model.requests[1].body["messages"]] == [
        "system", "system", "user", "assistant", "tool",
    ]  # fmt: skip


def test_with_files_as_system_messages_the_question_alone_is_looked_up(lab, model):
    model.expect(*(text_stream("Thirty days.") for _ in range(3)))
    plain = sources_in(events_of(send(lab, open_webui.chat())))
    apart = sources_in(events_of(send(lab, open_webui.chat(before=open_webui.FILE))))
    assert apart == plain
    # Without RAG_SYSTEM_CONTEXT, the file drowns the question: the page says so.
    together = sources_in(events_of(send(lab, open_webui.chat(f"{open_webui.FILE}\n{open_webui.QUESTION}"))))
    assert together[0]["score"] < 0.3 < plain[0]["score"]


def test_a_task_of_an_agent_without_passages_and_tools_reaches_the_model_as_it_is(lab, model):
    model.expect(said('{"title": "Holiday"}'))
    answer = send(lab, open_webui.task("tasks")).json()
    assert answer["choices"][0]["message"]["content"] == '{"title": "Holiday"}'
    assert "rag_sources" not in answer
    assert model.requests[0].body == open_webui.task("llama3.2")


def test_embeddings_of_its_files_are_those_of_the_corpus(lab, model):
    told = send(lab, {"input": ["The lemur fund pays 77 euros."], "model": "wordllama"}, "embeddings").json()
    assert [(each["index"], len(each["embedding"])) for each in told["data"]] == [(0, 256)]
    assert model.requests == []


def test_a_connection_of_the_type_responses_gets_their_events(lab, model):
    model.expect(text_stream("Thirty days."))
    response = send(lab, open_webui.response("handbook"), "responses")
    assert check_events(response_events(response.text)).output_text == "Thirty days."
    names = [each["function"]["name"] for each in model.requests[0].body["tools"]]
    assert set(open_webui.TOOL_NAMES) <= set(names)


def test_its_mcp_connection_discovers_lists_and_calls(lab):
    def ask(number, method, **params):
        headers, body = open_webui.mcp(number, method, **params)
        with lab.app.client(lab.token, **headers) as client:
            response = client.post("/mcp", json=body)
        assert response.status_code == 200, response.text
        told = response.json()
        assert told["id"] == number
        return told["result"]

    assert ask(1, "server/discover")["supportedVersions"] == ["2026-07-28"]
    names = [each["name"] for each in ask(2, "tools/list")["tools"]]
    assert names[:3] == ["search_knowledge", "read_document", "list_documents"]
    found = ask(3, "tools/call", name="search_knowledge", arguments={"query": "oak table"})
    assert not found.get("isError")
    assert "[1] oak.txt" in found["content"][0]["text"]
