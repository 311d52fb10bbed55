"""Responses over a scripted model that fails, or answers in forms of its own."""

from __future__ import annotations

from typing import Any

import pytest

from parquetry.serving.chat.failures import UpstreamFailed
from tests.serving.responses.models import chunks, completion, search
from tests.serving.responses.scripted_model import BLUE, FUNCTION, SEARCH, Scripted, run


def test_a_failure_before_the_answer_is_no_response():
    with pytest.raises(UpstreamFailed, match="slow down"):
        run(Scripted([UpstreamFailed("upstream-failed", "slow down", 429)]))


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_failure_within_the_answer_ends_the_response(after):
    pieces = [*list(chunks(completion("Hello, you.")))[:after], UpstreamFailed("upstream-cut", "it broke off")]
    response, _ = run(Scripted([pieces]))
    assert (response.status, response.error.message) == ("failed", "it broke off")
    assert all(each.status == "incomplete" for each in response.output)


def test_a_failure_of_a_later_answer_ends_the_response():
    model = Scripted([completion(None, search("sky")), UpstreamFailed("upstream-failed", "gone", 500)], {"sky": [BLUE]})
    response, _ = run(model, tools=[SEARCH])
    assert (response.status, response.output[0].status) == ("failed", "completed")


def test_an_answer_without_an_end_is_a_failure():
    pieces = [
        each for each in chunks(completion("Hello")) if each["choices"] and not each["choices"][0]["finish_reason"]
    ]
    response, _ = run(Scripted([pieces]))
    assert response.status == "failed"
    assert "ended its answer" in response.error.message


def test_calls_in_the_forms_of_other_services():
    """No numbers, a name on every piece, arguments before the name, another choice, text in parts."""

    def chunk(*calls: Any, index: int = 0, **delta: Any) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {**delta, "tool_calls": list(calls)}}]}

    def piece(arguments: str, name: str | None = None, **more: Any) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": arguments}, **more}

    pieces = [
        chunk(content=[{"type": "text", "text": "One "}, {"type": "thinking"}]),
        chunk(content="other", index=1),
        chunk(piece('{"a"', "f", id="x")),
        chunk(piece(":1}", "f", id="x")),
        chunk(piece("{}", "g", id="y")),
        chunk(piece('{"b', id="z", index=5)),
        chunk(piece('":2}', "h", index=5)),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    response, _ = run(Scripted([pieces]), tools=[{**FUNCTION, "name": name} for name in "fgh"])
    assert response.output_text == "One "
    assert [(each.call_id, each.name, each.arguments) for each in response.output[1:]] == [
        ("x", "f", '{"a":1}'),
        ("y", "g", "{}"),
        ("z", "h", '{"b":2}'),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"choices": 5},
        {"choices": [5, {"delta": 5}]},
        {"choices": [{"delta": {"content": 5, "refusal": {}, "tool_calls": 5}}]},
        {"choices": [{"delta": {"tool_calls": [5, {"index": 0, "id": 5, "function": {"name": 5, "arguments": 5}}]}}]},
        {"usage": {"prompt_tokens": "many", "prompt_tokens_details": 5}},
        {"choices": [{"finish_reason": {}}]},
    ],
)
def test_a_broken_piece_is_no_error_of_this_service(broken):
    response, _ = run(Scripted([[broken, *chunks(completion("Hello"))]]))
    assert response.status in ("completed", "failed")


def test_a_call_without_a_name_is_a_failure():
    pieces = [{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}, "finish_reason": "tool_calls"}]}]
    response, _ = run(Scripted([pieces]))
    assert "without naming it" in response.error.message
