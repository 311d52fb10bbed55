"""Chat completions of a scripted model, whole and as chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 4,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 1},
}


def call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """Return a call of a tool; arguments other than a text are sent as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def search(*queries: str, call_id: str = "call_1", name: str = "file_search") -> dict[str, Any]:
    """Return a call of `file_search`."""
    return call(name, {"queries": queries}, call_id)


def completion(
    text: str | None = None,
    *calls: Mapping[str, Any],
    finish: str | None = None,
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = USAGE,
) -> dict[str, Any]:
    """Return a whole chat completion."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    if calls:
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    told = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return told if usage is None else {**told, "usage": usage}


def chunks(whole: Mapping[str, Any], size: int = 3) -> Iterator[dict[str, Any]]:
    """Yield a chat completion as a model service streams it.

    Args:
        whole: the completion.
        size: characters of each piece.
    """
    (choice,) = whole["choices"]
    message = choice["message"]
    yield _chunk({"role": "assistant", "content": ""})
    for name in ("content", "refusal"):
        for piece in _cut(message.get(name) or "", size):
            yield _chunk({name: piece})
    for index, each in enumerate(message.get("tool_calls", ())):
        function = each["function"]
        yield _chunk({"tool_calls": [{**each, "index": index, "function": {**function, "arguments": ""}}]})
        for piece in _cut(function["arguments"], size):
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk({}, choice["finish_reason"])
    if "usage" in whole:
        yield {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": whole["usage"]}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _cut(text: str, size: int) -> Sequence[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
