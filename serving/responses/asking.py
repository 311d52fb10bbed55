"""Requests of `POST /v1/responses`: every parameter is used, repeated in the response, or refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parquetry.serving.responses.given import Given
from parquetry.serving.responses.tools import ToolChoice, Tools, tool_choice_of, tools_of

RESULTS = "file_search_call.results"
_INCLUDED = (
    RESULTS,
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
)
"""values of `include`; but for the first, they concern items that no response of this service has"""
_LOGPROBS = "message.output_text.logprobs"
_REFUSED = {
    "background": "is not supported: a response ends with its request; leave it out",
    "context_management": "is not supported; leave it out, and shorten the input",
    "conversation": "is not supported; use previous_response_id, or send the whole input",
    "moderation": "is not supported; leave it out",
    "prompt": "is not supported: templates are kept at OpenAI; send instructions and input",
    "top_logprobs": "is not supported; leave it out",
}
"""parameters that this service cannot honour, if they have a value"""
_HANDED_ON = (
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
)
"""parameters that chat completions have under the same name"""
_READ = (
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
)
_LEAST_TOKENS = 16
_MOST_METADATA = 16


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request that this service can carry out."""

    model: str
    items: tuple[Given, ...]
    """input items with their places; a text is a message of the user"""
    instructions: str | None
    previous_response_id: str | None
    tools: Tools
    choice: ToolChoice
    chat: Mapping[str, Any]
    """parameters of the request to the model, beside messages, tools and limits"""
    max_output_tokens: int | None
    """of all requests to the model together"""
    max_tool_calls: int | None
    is_json: bool
    """True if the answer has to be JSON"""
    with_results: bool
    """True if the client wants the results of searches"""
    stream: bool
    store: bool | None
    """None if the client leaves it open"""
    shown: Mapping[str, Any]
    """parameters as the response repeats them"""


def request_of(body: Any) -> ResponseRequest:
    """Read the body of a request.

    Raises:
        UnusableParameter: it cannot be carried out as it is; the message names the parameter.
    """
    given = Given(body, "")
    _check_names(given)
    tools = tools_of(given.member("tools"))
    choice = tool_choice_of(given.member("tool_choice"), tools)
    parallel = given.member("parallel_tool_calls")
    text_format = _text_format(given.member("text"))
    instructions = given.member("instructions")
    previous, store = given.member("previous_response_id"), given.member("store")
    tokens, calls = given.member("max_output_tokens"), given.member("max_tool_calls")
    stream = bool(given.member("stream")) and given.member("stream").flag()
    sampling = _sampling(given)
    chat = {
        **sampling,
        **text_format,
        **_reasoning(given.member("reasoning")),
        **{name: given.member(name).value for name in _HANDED_ON if given.member(name)},
    }
    if parallel and (tools.functions or tools.file_search):
        chat["parallel_tool_calls"] = parallel.flag()
    _check_stream_options(given.member("stream_options"), stream=stream)
    return ResponseRequest(
        model=given.member("model").text(256),
        items=_items(given.member("input")),
        instructions=instructions.text() if instructions else None,
        previous_response_id=previous.text(255) if previous else None,
        tools=tools,
        choice=choice,
        chat=chat,
        max_output_tokens=tokens.whole(_LEAST_TOKENS) if tokens else None,
        max_tool_calls=calls.whole(1) if calls else None,
        is_json="response_format" in text_format,
        with_results=_includes_results(given.member("include")),
        stream=stream,
        store=store.flag() if store else None,
        shown=_shown(given, tools, choice),
    )


def _check_names(given: Given) -> None:
    known = {*_READ, *_REFUSED, *_HANDED_ON}
    for name in given.object():
        if name not in known:
            raise Given(None, name[:80]).unknown()
    for name, why in _REFUSED.items():
        if given.member(name).value not in (None, False, 0):
            raise given.member(name).refused(why)
    if given.member("truncation"):
        truncation = given.member("truncation")
        if truncation.choice("auto", "disabled") == "auto":
            raise truncation.refused(
                "is 'auto', which is not supported: nothing is left out unasked; shorten the input"
            )


def _items(given: Given) -> tuple[Given, ...]:
    if isinstance(given.value, str):
        return (Given({"type": "message", "role": "user", "content": given.value}, "input"),)
    return tuple(given.items()) if given else ()


def _sampling(given: Given) -> Mapping[str, Any]:
    chat: dict[str, Any] = {}
    for name, most in (("temperature", 2), ("top_p", 1)):
        if value := given.member(name):
            chat[name] = value.number(0, most)
    return chat


def _reasoning(given: Given) -> Mapping[str, Any]:
    if not given:
        return {}
    for name in ("summary", "generate_summary"):
        if given.member(name):
            raise given.member(name).refused("is not supported: models that speak chat completions give no summaries")
    for name in given.object():
        if name not in ("effort", "summary", "generate_summary") and given.member(name):
            raise given.member(name).refused("is not supported; leave it out")
    effort = given.member("effort")
    return {"reasoning_effort": effort.text(32)} if effort else {}


def _text_format(given: Given) -> Mapping[str, Any]:
    """Return the parameters of chat completions for `text`."""
    if not given:
        return {}
    chat: dict[str, Any] = {}
    if verbosity := given.member("verbosity"):
        chat["verbosity"] = verbosity.choice("low", "medium", "high")
    form = given.member("format")
    kind = form.member("type").choice("text", "json_schema", "json_object") if form else "text"
    if kind == "json_object":
        chat["response_format"] = {"type": kind}
    elif kind == "json_schema":
        schema: dict[str, Any] = {"name": form.member("name").text(64), "schema": form.member("schema").object()}
        if description := form.member("description"):
            schema["description"] = description.text()
        if strict := form.member("strict"):
            schema["strict"] = strict.flag()
        chat["response_format"] = {"type": kind, "json_schema": schema}
    return chat


def _includes_results(given: Given) -> bool:
    if not given:
        return False
    asked = given.items()
    for each in asked:
        if each.text() == _LOGPROBS:
            raise each.refused("is 'message.output_text.logprobs', which is not supported")
        each.choice(*_INCLUDED)
    return any(each.value == RESULTS for each in asked)


def _check_stream_options(given: Given, *, stream: bool) -> None:
    if not given:
        return
    if not stream:
        raise given.invalid("needs stream: true")
    obfuscated = given.member("include_obfuscation")
    if obfuscated and obfuscated.flag():
        raise obfuscated.refused("is not supported; leave it out, or set it to false")


def _metadata(given: Given) -> Mapping[str, str]:
    if not given:
        return {}
    metadata = given.object()
    if len(metadata) > _MOST_METADATA:
        raise given.invalid(f"has {len(metadata)} keys; at most {_MOST_METADATA} are possible")
    for name in metadata:
        if len(name) > 64:
            raise given.invalid("has a key with more than 64 characters")
        given.member(name).text(512)
    return metadata


def _shown(given: Given, tools: Tools, choice: ToolChoice) -> Mapping[str, Any]:
    """Return the parameters as the response repeats them, with the defaults of the API."""
    values = {name: given.member(name).value for name in (*_READ, *_HANDED_ON)}
    form = (values["text"] or {}).get("format") or {"type": "text"}
    text = {"format": {key: value for key, value in form.items() if value is not None}}
    if verbosity := (values["text"] or {}).get("verbosity"):
        text["verbosity"] = verbosity
    shown = {
        "background": False,
        "instructions": values["instructions"],
        "max_output_tokens": values["max_output_tokens"],
        "max_tool_calls": values["max_tool_calls"],
        "metadata": _metadata(given.member("metadata")),
        "model": values["model"],
        "parallel_tool_calls": values["parallel_tool_calls"] is not False,
        "previous_response_id": values["previous_response_id"],
        "reasoning": {"effort": (values["reasoning"] or {}).get("effort"), "summary": None},
        "temperature": 1 if values["temperature"] is None else values["temperature"],
        "text": text,
        "tool_choice": choice.shown,
        "tools": list(tools.shown),
        "top_p": 1 if values["top_p"] is None else values["top_p"],
        "truncation": "disabled",
    }
    return {**shown, **{name: values[name] for name in _HANDED_ON if values[name] is not None}}
