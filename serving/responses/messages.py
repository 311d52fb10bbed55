"""Input items of the Responses API as messages of a chat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from parquetry.serving.responses.given import Given

_ROLES = ("user", "assistant", "system", "developer")
_LEFT_OUT = frozenset({"reasoning", "file_search_call"})
"""items of earlier answers that the model does not get again: the thoughts of another model, and searches, whose
results may have changed, as may the caller's rights; the answers that came of them stay"""
_KNOWN = "message, function_call, function_call_output, reasoning and file_search_call"


def messages_of(items: Iterable[Given]) -> list[dict[str, Any]]:
    """Translate items.

    Args:
        items: all items of the conversation, in order, each with its place in the request.

    Raises:
        UnusableParameter: an item cannot be given to a model that speaks chat completions.
    """
    conversation = _Conversation()
    for item in items:
        conversation.add(item)
    conversation.check_outputs()
    return conversation.messages


class _Conversation:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._calls: dict[str, Given] = {}
        self._answered: set[str] = set()

    def add(self, item: Given) -> None:
        kind = _kind(item)
        if kind == "message":
            self._say(item)
        elif kind == "function_call":
            self._call(item)
        elif kind == "function_call_output":
            self._output(item)
        elif kind not in _LEFT_OUT:
            raise item.member("type").refused(f"is {kind!r}; this service reads {_KNOWN}")

    def check_outputs(self) -> None:
        """Refuse a conversation with a call that has no output: models do not go on from there."""
        for call_id, item in self._calls.items():
            if call_id not in self._answered:
                raise item.invalid(f"is the function call {call_id!r}, which has no function_call_output")

    def _say(self, item: Given) -> None:
        role = item.member("role").choice(*_ROLES)
        content = item.member("content")
        if role == "assistant":
            self.messages.append({"role": role, "content": _assistant_text(content)})
            return
        said = _content(content)
        # Many models know `system` only, and want one such message, at the beginning.
        if role == "user":
            self.messages.append({"role": role, "content": said})
            return
        if not isinstance(said, str):
            raise content.refused("has images or files in a message of the system")
        self.messages.append({"role": "system", "content": said})

    def _call(self, item: Given) -> None:
        call_id = item.member("call_id").text()
        function = {"name": item.member("name").text(), "arguments": item.member("arguments").text()}
        if call_id in self._calls:
            raise item.member("call_id").invalid(f"is {call_id!r} a second time")
        self._calls[call_id] = item
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != "assistant":
            last = {"role": "assistant", "content": None}
            self.messages.append(last)
        last.setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": function})

    def _output(self, item: Given) -> None:
        call_id = item.member("call_id").text()
        if call_id not in self._calls:
            raise item.member("call_id").invalid(f"is {call_id!r}, and no function_call before it has this id")
        if call_id in self._answered:
            raise item.member("call_id").invalid(f"is {call_id!r}, which has an output already")
        self._answered.add(call_id)
        output = item.member("output")
        content = _content(output)
        if not isinstance(content, str):
            raise output.refused("has images or files, which models that speak chat completions take from users only")
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})


def _kind(item: Given) -> str:
    kind = item.member("type")
    if kind:
        return kind.text()
    return "message" if item.member("role") else item.member("type").text()


def _assistant_text(content: Given) -> str:
    if isinstance(content.value, str):
        return content.text()
    texts = []
    for part in content.items():
        kind = part.member("type").choice("output_text", "refusal", "input_text")
        texts.append(part.member("refusal" if kind == "refusal" else "text").text())
    return "".join(texts)


def _content(content: Given) -> str | list[Mapping[str, Any]]:
    if isinstance(content.value, str):
        return content.text()
    parts = [_part(part) for part in content.items()]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Given) -> Mapping[str, Any]:
    kind = part.member("type").choice("input_text", "input_image", "input_file", "output_text")
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": part.member("text").text()}
    if file_id := part.member("file_id"):
        raise file_id.refused("is not supported; put the file into a vector store, and let file_search find it")
    return _image(part) if kind == "input_image" else _file(part)


def _image(part: Given) -> Mapping[str, Any]:
    url = part.member("image_url").text()
    # The model's service fetches an address, as it does for chat completions; this service never does.
    image: dict[str, Any] = {"url": url}
    if detail := part.member("detail"):
        image["detail"] = detail.choice("low", "high", "auto")
    return {"type": "image_url", "image_url": image}


def _file(part: Given) -> Mapping[str, Any]:
    if url := part.member("file_url"):
        raise url.refused("is not supported; send the content as file_data")
    file = {"file_data": part.member("file_data").text()}
    if name := part.member("filename"):
        file["filename"] = name.text()
    return {"type": "file", "file": file}


def with_instructions(messages: list[dict[str, Any]], *instructions: str | None) -> list[dict[str, Any]]:
    """Return the messages behind instructions, as one message of the system at the beginning.

    Args:
        messages: messages of the conversation.
        instructions: texts of the system that come first.
    """
    texts = [each for each in instructions if each]
    rest = list(messages)
    while rest and rest[0]["role"] == "system":
        texts.append(rest.pop(0)["content"])
    return [{"role": "system", "content": "\n\n".join(texts)}, *rest] if texts else rest
