"""Every parameter of a request is used, repeated in the response, or refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from parquetry.serving.access.refusals import UnusableParameter
from parquetry.serving.responses.asking import request_of
from parquetry.serving.responses.given import Given
from parquetry.serving.responses.messages import messages_of, with_instructions
from parquetry.serving.responses.tools import offered
from parquetry.serving.responses.transcript import ResponseTranscript
from tests.serving.responses.checks import check_response

FUNCTION = {
    "type": "function",
    "name": "get_time",
    "description": "Tell the time.",
    "parameters": {"type": "object", "properties": {}},
    "strict": True,
}
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
IMAGE = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}


def asked(**fields: Any) -> Any:
    return request_of({"model": "m", "input": "Hi", **fields})


def chat(*items: Any) -> list[dict[str, Any]]:
    return messages_of(Given(list(items), "input").items())


def refusal(**fields: Any) -> tuple[str | None, str]:
    with pytest.raises(UnusableParameter) as refused:
        messages_of(asked(**fields).items)
    return refused.value.param, refused.value.reason


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["message.output_text.logprobs"]}, "include[0]"),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, "reasoning.summary"),
        ({"reasoning": {"context": "all_turns"}}, "reasoning.context"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [FUNCTION, {**FUNCTION, "name": "b", "defer_loading": True}]}, "tools[1].defer_loading"),
        ({"tools": [{**FUNCTION, "allowed_callers": ["programmatic"]}]}, "tools[0].allowed_callers"),
        ({"tools": [SEARCH, SEARCH]}, "tools[1]"),
        (
            {"tools": [{**SEARCH, "ranking_options": {"hybrid_search": {"embedding_weight": 1, "text_weight": 1}}}]},
            "tools[0].ranking_options.hybrid_search",
        ),
        ({"tools": [FUNCTION], "tool_choice": {"type": "mcp", "server_label": "x"}}, "tool_choice.type"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type"),
        ({"input": [{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": ""}]}, "input[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "low"}]}]},
            "input[0].content[0].file_id",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "http://x/a"}]}]},
            "input[0].content[0].file_url",
        ),
        ({"input": [{"role": "system", "content": [IMAGE]}]}, "input[0].content"),
    ],
)
def test_what_the_service_cannot_do_is_refused_by_name(fields, param):
    assert refusal(**fields) == (param, "unsupported-parameter")


@pytest.mark.parametrize(
    ("fields", "param", "reason"),
    [
        ({"model": None}, "model", "missing-required-parameter"),
        ({"temprature": 1}, "temprature", "unknown-parameter"),
        ({"temperature": 3}, "temperature", "invalid-value"),
        ({"temperature": "hot"}, "temperature", "invalid-value"),
        ({"stream": "yes"}, "stream", "invalid-value"),
        ({"max_output_tokens": 5}, "max_output_tokens", "invalid-value"),
        ({"max_tool_calls": True}, "max_tool_calls", "invalid-value"),
        ({"metadata": {"a": 1}}, "metadata.a", "invalid-value"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata", "invalid-value"),
        ({"include": ["everything"]}, "include[0]", "invalid-value"),
        ({"stream_options": {"include_obfuscation": False}}, "stream_options", "invalid-value"),
        ({"input": 5}, "input", "invalid-value"),
        ({"input": [5]}, "input[0]", "invalid-value"),
        ({"input": [{"content": "x"}]}, "input[0].type", "missing-required-parameter"),
        ({"input": [{"role": "king", "content": "x"}]}, "input[0].role", "invalid-value"),
        ({"input": [{"role": "user", "content": [{"type": "x"}]}]}, "input[0].content[0].type", "invalid-value"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c9", "output": "x"}]},
            "input[0].call_id",
            "invalid-value",
        ),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
            "input[0]",
            "invalid-value",
        ),
        (
            {
                "input": [
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "x"},
                    {"type": "function_call_output", "call_id": "c", "output": "y"},
                ]
            },
            "input[2].call_id",
            "invalid-value",
        ),
        ({"text": {"format": {"type": "yaml"}}}, "text.format.type", "invalid-value"),
        (
            {"text": {"format": {"type": "json_schema", "name": "n"}}},
            "text.format.schema",
            "missing-required-parameter",
        ),
        ({"tools": [{**SEARCH, "vector_store_ids": []}]}, "tools[0].vector_store_ids", "invalid-value"),
        ({"tools": [{**SEARCH, "max_num_results": 51}]}, "tools[0].max_num_results", "invalid-value"),
        (
            {"tools": [{**SEARCH, "ranking_options": {"score_threshold": 2}}]},
            "tools[0].ranking_options.score_threshold",
            "invalid-value",
        ),
        ({"tools": [FUNCTION, FUNCTION]}, "tools", "invalid-value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid-value"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice", "invalid-value"),
        ({"tools": [SEARCH], "tool_choice": {"type": "function", "name": "f"}}, "tool_choice.name", "invalid-value"),
    ],
)
def test_an_impossible_value_is_refused_by_name(fields, param, reason):
    assert refusal(**fields) == (param, reason)


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(UnusableParameter, match="the body has to be an object"):
        request_of([])


def test_parameters_are_those_of_chat_completions():
    request = asked(
        temperature=0.5,
        top_p=0.1,
        reasoning={"effort": "low"},
        user="u",
        safety_identifier="s",
        prompt_cache_key="k",
        service_tier="auto",
        parallel_tool_calls=False,
        tools=[FUNCTION],
        text={"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"a": 1}, "strict": True}},
        metadata={"a": "b"},
    )
    assert request.chat == {
        "temperature": 0.5,
        "top_p": 0.1,
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"a": 1}, "strict": True}},
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "service_tier": "auto",
        "parallel_tool_calls": False,
    }


def test_null_is_the_same_as_no_value():
    names = ("tools", "tool_choice", "include", "metadata", "text", "reasoning", "store", "stream", "background")
    assert asked(**dict.fromkeys(names)) == asked()


def test_a_response_repeats_the_parameters():
    fields = {
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
        "tools": [FUNCTION, {**SEARCH, "max_num_results": 3, "filters": None}],
        "tool_choice": {"type": "file_search"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "temperature": 0,
        "max_output_tokens": 20,
        "max_tool_calls": 2,
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "user": "u",
    }
    shown = ResponseTranscript(asked(**fields), "resp_1", stored=False).response("in_progress")
    read = check_response(shown)
    assert {name: shown[name] for name in fields if name != "tools"} == {
        name: value for name, value in fields.items() if name != "tools"
    }
    assert shown["tools"] == [FUNCTION, {**SEARCH, "max_num_results": 3}]
    assert (read.top_p, read.truncation, read.background) == (1, "disabled", False)


def test_defaults_are_repeated_too():
    response = ResponseTranscript(asked(), "resp_1", stored=True).response("in_progress")
    assert check_response(response).text.format.type == "text"
    assert (response["temperature"], response["tools"], response["metadata"]) == (1, [], {})


def test_items_become_messages():
    messages = chat(
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, IMAGE]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": '{"x":1}'},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}]},
        {"role": "user", "content": [{"type": "input_file", "filename": "a.txt", "file_data": "data:x"}]},
    )
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": '{"x":1}'}},
    ]
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, image]},
        {"role": "assistant", "content": "b", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:x", "filename": "a.txt"}}]},
    ]


def test_instructions_and_the_first_messages_of_the_system_are_one():
    """Templates of many local models want exactly one, at the beginning."""
    system, user = {"role": "system", "content": "b"}, {"role": "user", "content": "c"}
    assert with_instructions([system, user, system], "a", None) == [
        {"role": "system", "content": "a\n\nb"},
        user,
        system,
    ]
    assert with_instructions([user], None) == [user]


def test_the_tool_of_the_search_never_has_the_name_of_a_function_of_the_client():
    request = asked(tools=[{**FUNCTION, "name": "file_search"}, {**FUNCTION, "name": "file_search_2"}, SEARCH])
    assert request.tools.file_search.function == "file_search_3"


@pytest.mark.parametrize(
    ("choice", "first", "later"),
    [
        (None, (["file_search", "get_time"], None), (["file_search", "get_time"], None)),
        ("none", (["file_search", "get_time"], "none"), (["file_search", "get_time"], "none")),
        ("required", (["file_search", "get_time"], "required"), (["file_search", "get_time"], None)),
        (
            {"type": "file_search"},
            (["file_search", "get_time"], {"type": "function", "function": {"name": "file_search"}}),
            (["file_search", "get_time"], None),
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_time"}]},
            (["get_time"], "required"),
            (["get_time"], None),
        ),
    ],
)
def test_a_required_call_is_required_once(choice, first, later):
    request = asked(tools=[SEARCH, FUNCTION], tool_choice=choice)

    def told(**bounds: bool) -> tuple[list[str], Any]:
        body = offered(request.tools, request.choice, **bounds)
        return [each["function"]["name"] for each in body["tools"]], body.get("tool_choice")

    assert told(searches=True, forced=True) == first
    assert told(searches=True, forced=False) == later


def test_a_model_that_may_search_no_more_is_not_offered_to():
    both, alone = asked(tools=[SEARCH, FUNCTION]), asked(tools=[SEARCH])
    last = offered(both.tools, both.choice, searches=False, forced=False)
    assert [each["function"]["name"] for each in last["tools"]] == ["get_time"]
    assert offered(alone.tools, alone.choice, searches=False, forced=False)["tool_choice"] == "none"
    assert offered(asked().tools, asked().choice, searches=True, forced=True) == {}
