"""Tools: those of the proxy are carried out by it, for the caller alone; those of the client are left to it."""

import json

import pytest

from parquetry.serving.chat.tools import MOST_CALLS, READ_CHARACTERS
from tests.servers.model_service import (
    DONE,
    call,
    call_stream,
    chunk,
    said,
    streamed,
    text_stream,
    usage_chunk,
)
from tests.serving.chat.events import events_of, sources_in, text_in

WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


def results(asked):
    return [each["content"] for each in asked.body["messages"] if each["role"] == "tool"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_calls_of_the_proxys_tools_are_carried_out_unseen(ask, model, stream):
    calls = [call("read_full_document", "c1", path="sub/power.md"), call("search_knowledge", "c2", query="oak table")]
    if stream:
        model.expect(call_stream(*calls, text="One moment."), text_stream("Backwards.", number=2))
        response = ask(stream=True, rag_top_k=1)
        events = events_of(response)
        assert text_in(events) == "One moment.\n\nBackwards."
        assert {each["id"] for each in events} == {"chatcmpl-1"}
        assert [each["choices"][0]["finish_reason"] for each in events if each["choices"]][-1] == "stop"
        assert sum(each["choices"][0]["finish_reason"] is not None for each in events) == 1
        assert sum("role" in each["choices"][0]["delta"] for each in events) == 1
        sources = sources_in(events)
    else:
        model.expect(said("One moment.", calls), said("Backwards."))
        response = ask(rag_top_k=1)
        answer = response.json()
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": "One moment.\n\nBackwards."}
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert answer["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
        sources = answer["rag_sources"]
    assert b"tool_calls" not in response.content
    assert b"read_full_document" not in response.content
    first, second = model.requests
    assert {each["function"]["name"] for each in first.body["tools"]} == {"read_full_document", "search_knowledge"}
    message = second.body["messages"][2]
    assert message["role"] == "assistant"
    assert message["content"] == "One moment."
    assert [each["id"] for each in message["tool_calls"]] == ["c1", "c2"]
    read, found = results(second)
    assert "the fan in bay 4 runs backwards" in read
    assert "(path: sub/power.md; characters 0 to 64 of 64)" in read
    assert "The oak table has four legs" in found
    # The document that was read is among what was found, and one source all the same.
    named = [(each["path"], each["chunk_id"]) for each in sources]
    assert named[0] == ("leave.md", 0)
    assert sorted(named) == [("leave.md", 0), ("oak.txt", 0), ("sub/power.md", 0)]


SEARCHED = {
    "read, then found": [
        call("read_full_document", "c1", path="oak.txt"),
        call("search_knowledge", "c2", query="oak table", top_k=1),
    ],
    "found, then read": [
        call("search_knowledge", "c1", query="oak table", top_k=1),
        call("read_full_document", "c2", path="oak.txt"),
    ],
    "found twice": [
        call("search_knowledge", "c1", query="oak table", top_k=1),
        call("search_knowledge", "c2", query="legs of oak", top_k=1),
    ],
    "read twice": [
        call("read_full_document", "c1", path="oak.txt"),
        call("read_full_document", "c2", path="docs/oak.txt", offset=8),
    ],
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("calls", SEARCHED.values(), ids=SEARCHED)
@pytest.mark.parametrize("top_k", [0, 1])
@pytest.mark.parametrize("apart", [False, True], ids=["one answer", "two answers"])
def test_what_two_tools_of_a_turn_show_is_one_source(ask, model, calls, stream, top_k, apart):
    """Found for the question before or not, and called in one answer or in two."""
    asked = [[each] for each in calls] if apart else [calls]
    script = [call_stream(*each, number=number) if stream else said(None, each) for number, each in enumerate(asked, 1)]
    model.expect(*script, text_stream("x", number=9) if stream else said("x"))
    response = ask("How much is the oak table?", stream=stream, rag_top_k=top_k)
    sources = sources_in(events_of(response)) if stream else response.json()["rag_sources"]
    found = any("search" in each["function"]["name"] for each in calls) or top_k
    assert [(each["path"], each["chunk_id"]) for each in sources] == [("oak.txt", 0 if found else None)]
    assert (sources[0]["score"] is not None) == bool(found)
    shown = results(model.requests[-1])
    assert len(shown) == 2
    assert all("legs" in each for each in shown)
    ids = [each["tool_call_id"] for each in model.requests[-1].body["messages"] if each["role"] == "tool"]
    assert ids == [each["id"] for each in calls]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("calls", SEARCHED.values(), ids=SEARCHED)
def test_what_two_tools_show_has_the_number_that_its_text_has(ask, model, calls, stream):
    """With numbers, the whole of a document is another passage than its chunk, and each has its number once."""
    model.expect(call_stream(*calls) if stream else said(None, calls), text_stream("x") if stream else said("x"))
    response = ask("How much is the oak table?", stream=stream, model="helper", rag_top_k=1)
    sources = sources_in(events_of(response)) if stream else response.json()["rag_sources"]
    reads = any("read" in each["function"]["name"] for each in calls)
    expected = [(1, 0), (2, None)] if reads else [(1, 0)]
    assert [(each["n"], each["chunk_id"]) for each in sources] == expected
    assert {each["path"] for each in sources} == {"oak.txt"}
    asked = model.requests[-1]
    assert "[1] [Source: oak.txt]" in asked.context
    for each, shown in zip(calls, results(asked), strict=True):
        number = 2 if "read" in each["function"]["name"] else 1
        assert f"[{number}] [Source: oak.txt]" in shown


def test_tokens_of_all_requests_are_summed_in_a_stream(ask, model):
    first = call_stream(call("search_knowledge", query="oak"))
    first = streamed(*first.pieces[:-1], usage_chunk((10, 5)))
    model.expect(first, text_stream("x", number=2, usage=(30, 7)))
    events = events_of(ask(stream=True, stream_options={"include_usage": True}))
    assert [each["usage"] for each in events if each.get("usage")] == [
        {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}
    ]
    assert events[-1]["choices"] == []
    sources_in(events)


def test_numbers_of_citations_go_on_over_all_calls_of_a_turn(ask, model):
    calls = [
        call("search_knowledge", "c1", query="oak table", top_k="3"),
        call("read_full_document", "c2", path="leave.md"),
    ]
    model.expect(said(None, calls), said("x"))
    sources = ask(model="helper").json()["rag_sources"]
    assert [each["n"] for each in sources] == [1, 2, 3, 4]
    found, read = results(model.requests[1])
    assert "[3] [Source: power.md]" in found or "[3] [Source: oak.txt]" in found
    assert "[4] [Source: leave.md]" in read


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_calls_of_the_clients_tools_are_returned_to_it(ask, model, stream):
    wanted = call("get_weather", "w1", city="Oslo")
    script = call_stream(wanted) if stream else said(None, [wanted])
    model.expect(script)
    response = ask(stream=stream, tools=[WEATHER])
    assert {each["function"]["name"] for each in model.requests[0].body["tools"]} == {
        "get_weather",
        "read_full_document",
        "search_knowledge",
    }
    if stream:
        assert response.content.startswith(b"".join(script.pieces[:-2]))
        assert len(sources_in(events_of(response))) == 3
    else:
        choice = response.json()["choices"][0]
        assert choice["message"]["tool_calls"] == [wanted]
        assert choice["finish_reason"] == "tool_calls"


def merged(events):
    """Return the calls that a client puts together from a stream."""
    found = {}
    for each in events:
        for delta in (each["choices"] or [{"delta": {}}])[0]["delta"].get("tool_calls") or ():
            known = found.setdefault(delta["index"], {"id": delta.get("id"), "name": "", "arguments": ""})
            known["name"] += delta["function"].get("name") or ""
            known["arguments"] += delta["function"].get("arguments") or ""
    return [found[index] for index in sorted(found)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("first", [True, False], ids=["ours first", "theirs first"])
def test_mixed_calls_leave_only_the_clients(ask, model, stream, first):
    ours, theirs = call("search_knowledge", "s1", query="oak"), call("get_weather", "w1", city="Oslo")
    calls = [ours, theirs] if first else [theirs, ours]
    model.expect(call_stream(*calls) if stream else said(None, calls))
    response = ask(stream=stream, tools=[WEATHER])
    assert len(model.requests) == 1
    assert b"search_knowledge" not in response.content
    if stream:
        events = events_of(response)
        assert merged(events) == [{"id": "w1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}]
        assert [each["choices"][0]["finish_reason"] for each in events][-1] == "tool_calls"
    else:
        assert response.json()["choices"][0]["message"]["tool_calls"] == [theirs]


def test_a_clients_tool_of_the_same_name_is_the_clients(ask, model):
    own = {"type": "function", "function": {"name": "search_knowledge", "parameters": {"type": "object"}}}
    wanted = call("search_knowledge", query="oak")
    model.expect(said(None, [wanted]))
    answer = ask(tools=[own]).json()
    assert answer["choices"][0]["message"]["tool_calls"] == [wanted]
    names = [each["function"]["name"] for each in model.requests[0].body["tools"]]
    assert sorted(names) == ["read_full_document", "search_knowledge"]


@pytest.mark.parametrize(
    "fields",
    [
        {"rag_enable_tools": False},
        {"n": 2},
        {"tool_choice": "required", "tools": [WEATHER]},
        {"tool_choice": "none", "tools": [WEATHER]},
        {"functions": [{"name": "f"}]},
    ],
)
def test_tools_are_not_offered_where_they_would_be_in_the_way(ask, model, fields):
    model.expect(said("x"))
    ask(**fields)
    asked = model.requests[0]
    assert asked.body.get("tools") == fields.get("tools")
    assert "read_full_document" not in asked.context


OAK = {"name": "search_knowledge", "arguments": '{"query": "oak"}'}
OPENED = {"role": "assistant", "content": "", "tool_calls": [{"index": 0, "function": {"name": "search_knowledge"}}]}


def pieces_of(*deltas, finish="tool_calls"):
    return streamed(*(chunk({"tool_calls": [delta]}) for delta in deltas), chunk(finish=finish))


@pytest.mark.parametrize(
    "stream",
    [
        pieces_of(
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "search_", "arguments": ""}},
            {"index": 0, "function": {"name": "knowledge"}},
            {"index": 0, "function": {"arguments": '{"query": "oak"}'}},
        ),
        pieces_of({"id": "c1", "type": "function", "function": OAK}),
        pieces_of(
            {"index": 0, "id": "", "function": {"name": "search_knowledge", "arguments": '{"query":'}},
            {"index": 0, "function": {"name": "search_knowledge", "arguments": ' "oak"}'}},
            finish="stop",
        ),
        streamed(
            chunk(OPENED),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"query": "oak"}'}}]}, finish="tool_calls"),
        ),
    ],
    ids=["name in pieces", "no index", "name again, no id", "all in two"],
)  # fmt: skip
def test_calls_are_understood_however_a_service_streams_them(ask, model, stream):
    model.expect(stream, text_stream("x", number=2))
    response = ask(stream=True)
    assert text_in(events_of(response)) == "x"
    assert b"search" not in response.content
    assert "The oak table has four legs" in results(model.requests[1])[0]


def test_a_call_whose_name_only_begins_like_ours_is_the_clients(ask, model):
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    wanted = {"index": 0, "id": "c", "type": "function", "function": {"name": "search", "arguments": ""}}
    model.expect(pieces_of(wanted), pieces_of(wanted))
    assert merged(events_of(ask(stream=True, tools=[tool]))) == [{"id": "c", "name": "search", "arguments": ""}]
    assert merged(events_of(ask(stream=True))) == [{"id": "c", "name": "search", "arguments": ""}]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (call("read_full_document", path="nowhere.md"), "There is no document 'nowhere.md'."),
        (call("read_full_document", path="../../etc/passwd"), "There is no document"),
        (call("read_full_document", path="eve.md"), "There is no document 'eve.md'."),
        (call("read_full_document", path="power.md\n"), "the fan in bay 4"),
        (call("read_full_document", path="docs/oak.txt"), "four legs"),
        (call("read_full_document", path="oak.txt", offset="8"), "characters 8 to 48 of 48"),
        (call("read_full_document"), "path is missing"),
        (call("search_knowledge", query=""), "query is missing"),
        (call("search_knowledge", query=7), "query is missing"),
        (call("search_knowledge", query="oak", top_k="many"), "four legs"),
        ({"id": "c", "function": {"name": "search_knowledge", "arguments": "{"}}, "no JSON object"),
        ({"id": "c", "function": {"name": "search_knowledge", "arguments": "[" * 10_000}}, "no JSON object"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(ask, model, wanted, told):
    model.expect(said(None, [wanted]), said("x"))
    assert ask().status_code == 200
    (result,) = results(model.requests[1])
    assert told in result


def test_many_calls_and_long_documents_are_bounded(shelf, ask, model):
    calls = [call("search_knowledge", f"c{number}", query="oak") for number in range(MOST_CALLS + 3)]
    model.expect(said(None, calls), said("x"))
    ask()
    found = results(model.requests[1])
    assert len(found) == len(calls)
    assert [("Too many calls" in each) for each in found] == [False] * MOST_CALLS + [True] * 3
    assert all(len(each) <= READ_CHARACTERS for each in found)


def test_a_token_that_may_only_search_gets_no_tool_that_reads(ask, model):
    wanted = call("read_full_document", path="leave.md")
    model.expect(said(None, [wanted]))
    answer = ask(token="seeker").json()
    assert [each["function"]["name"] for each in model.requests[0].body["tools"]] == ["search_knowledge"]
    # A call of a tool that was not offered is nothing that the proxy carries out.
    assert answer["choices"][0]["message"]["tool_calls"] == [wanted]
    assert "read_full_document" not in model.requests[0].context


def test_stream_of_a_call_and_nothing_else_is_one_stream_with_one_end(ask, model):
    model.expect(call_stream(call("search_knowledge", query="oak")), text_stream("x", number=2))
    content = ask(stream=True).content
    assert content.count(DONE) == 1
    assert content.endswith(DONE)
    assert json.loads(content.split(b"\n\n")[-3].removeprefix(b"data: "))["choices"][0]["finish_reason"] == "stop"
