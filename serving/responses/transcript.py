"""A response while it arises: chunks of chat completions go in, events of the Responses API come out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from parquetry.serving.responses.asking import ResponseRequest
from parquetry.serving.responses.citations import CitationReader, CitedFiles
from parquetry.serving.responses.parts import Event, FunctionItem, ItemStatus, MessageItem, OutputItem, SearchItem

ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed"]
_CUT: Mapping[str, Literal["max_output_tokens", "content_filter"]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
"""reason why a model ended -> reason why the response is incomplete"""


def new_id(kind: str) -> str:
    """Return an id that nobody can guess."""
    return f"{kind}_{secrets.token_hex(24)}"


@dataclass(slots=True)
class Round:
    """One answer of the model, perhaps of several within a response."""

    items: list[OutputItem] = field(default_factory=list)
    calls: dict[int, FunctionItem | SearchItem] = field(default_factory=dict)
    """calls by their number within the answer"""
    waiting: dict[int, dict[str, str]] = field(default_factory=dict)
    """calls whose name has not arrived yet"""
    raw: str = ""
    """the text as the model wrote it"""
    finish: str | None = None
    usage: Mapping[str, Any] | None = None

    def message(self, *, refused: bool) -> MessageItem | None:
        """Return the answer in words, or the refusal of one, if it has begun."""
        messages = (each for each in self.items if isinstance(each, MessageItem))
        return next((each for each in messages if (each.refusal is not None) == refused), None)

    @property
    def searches(self) -> list[SearchItem]:
        """The searches that the model asks for."""
        return [each for each in self.items if isinstance(each, SearchItem)]

    @property
    def has_functions(self) -> bool:
        """True if the client has to call a function."""
        return any(isinstance(each, FunctionItem) for each in self.items)

    def said(self) -> dict[str, Any]:
        """Return the answer as a message for the next request to the model."""
        calls = [
            {"id": each.call_id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in self.calls.values()
        ]
        return {"role": "assistant", "content": self.raw or None, "tool_calls": calls}


class ResponseTranscript:
    """One response.

    Args:
        request: the request that it answers.
        response_id: its id.
        stored: True if it will be kept.
    """

    def __init__(self, request: ResponseRequest, response_id: str, *, stored: bool) -> None:
        self.id = response_id
        self.files = CitedFiles()
        self.items: list[OutputItem] = []
        self.round = Round()
        self._request = request
        self._search = None if request.tools.file_search is None else request.tools.file_search.function
        self._numbers = 0
        self._usages: list[Mapping[str, Any] | None] = []
        self._base = {
            **request.shown,
            "id": response_id,
            "object": "response",
            "created_at": int(time.time()),
            "store": stored,
        }

    def open(self) -> Iterator[Event]:
        """Begin the response."""
        yield self.emit("response.created", response=self.response("in_progress"))
        yield self.emit("response.in_progress", response=self.response("in_progress"))

    def emit(self, kind: str, **fields: Any) -> Event:
        """Return the next event."""
        event = {"type": kind, "sequence_number": self._numbers, **fields}
        self._numbers += 1
        return event

    def begin_round(self) -> None:
        """Wait for the next answer of the model."""
        self.round = Round()

    def take(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        """Take a chunk of a streamed chat completion, or a whole one."""
        if isinstance(chunk.get("usage"), dict):
            self.round.usage = chunk["usage"]
        for choice in _objects(chunk.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            yield from self._delta(_object(choice.get("delta") or choice.get("message")))
            self.round.finish = choice.get("finish_reason") or self.round.finish

    def end_round(self) -> Iterator[Event]:
        """End what the model said; searches stay open."""
        self._usages.append(self.round.usage)
        status: ItemStatus = "incomplete" if self.cut is not None else "completed"
        if not self.round.items and self.cut is None:
            yield from self._message(refused=False)[1]
        for item in self.round.items:
            if status == "incomplete" or not isinstance(item, SearchItem):
                yield from item.close(status)

    @property
    def cut(self) -> Literal["max_output_tokens", "content_filter"] | None:
        """The reason why the model's last answer is incomplete; None if it is not."""
        return _CUT.get(str(self.round.finish))

    @property
    def output_tokens(self) -> int | None:
        """Tokens that the model has written so far; None if the model service does not say."""
        usage = self.usage()
        return None if usage is None else usage["output_tokens"]

    def ended(self) -> dict[str, Any]:
        """Return a response that did not fail, with all that the model said."""
        return self.response("completed" if self.cut is None else "incomplete")

    def finish(self, response: Mapping[str, Any]) -> Event:
        """Return the last event of a response that did not fail.

        Args:
            response: as `ended` returned it.
        """
        return self.emit(f"response.{response['status']}", response=response)

    def fail(self, code: str, message: str) -> Iterator[Event]:
        """End a response that cannot be completed, with all items that are open."""
        for item in self.items:
            if item.status == "in_progress":
                yield from item.close("failed" if isinstance(item, SearchItem) else "incomplete")
        error = {"code": code, "message": message}
        yield self.emit("response.failed", response=self.response("failed", error))

    def response(self, status: ResponseStatus, error: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the response as it is now."""
        usage = None if status == "in_progress" else self.usage()
        return {
            **self._base,
            **({} if usage is None else {"usage": usage}),
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "error": error,
            "incomplete_details": {"reason": self.cut} if status == "incomplete" else None,
            "output": [each.item() for each in self.items],
        }

    def usage(self) -> dict[str, Any] | None:
        """Return the tokens of all answers; None if the model service does not say."""
        if not self._usages or any(each is None for each in self._usages):
            return None
        used = [_tokens(each) for each in self._usages if each is not None]
        read, written, cached, cache_written, thought = (sum(numbers) for numbers in zip(*used, strict=True))
        return {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": cache_written},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": read + written,
        }

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        if text := _text(delta.get("content")):
            self.round.raw += text
            message, opening = self._message(refused=False)
            yield from opening
            yield from message.say(text)
        if refusal := _text(delta.get("refusal")):
            message, opening = self._message(refused=True)
            yield from opening
            yield from message.decline(refusal)
        for call in _objects(delta.get("tool_calls")):
            yield from self._call(call)

    def _message(self, *, refused: bool) -> tuple[MessageItem, Iterator[Event]]:
        """Return the message that is being said, with the events that begin it if it is new."""
        message = self.round.message(refused=refused)
        if message is not None:
            return message, iter(())
        message = MessageItem(new_id("msg"), len(self.items), self.emit, CitationReader(self.files))
        message.refusal = "" if refused else None
        self._add(message)
        return message, message.open()

    def _call(self, call: Mapping[str, Any]) -> Iterator[Event]:
        number = self._number(call)
        function = _object(call.get("function"))
        piece = _text(function.get("arguments"))
        if number in self.round.calls:
            if piece:
                yield from self.round.calls[number].extend(piece)
            return
        known = self.round.waiting.setdefault(number, {"id": "", "name": "", "arguments": ""})
        known["id"] = known["id"] or _text(call.get("id"))
        known["name"] = known["name"] or _text(function.get("name"))
        known["arguments"] += piece
        if known["name"]:
            item = self._new_call(known.get("id") or new_id("call"), known["name"])
            del self.round.waiting[number]
            self.round.calls[number] = item
            self._add(item)
            yield from item.open()
            if known["arguments"]:
                yield from item.extend(known["arguments"])

    def _new_call(self, call_id: str, name: str) -> FunctionItem | SearchItem:
        index = len(self.items)
        if name == self._search:
            return SearchItem(new_id("fs"), index, self.emit, call_id, self._request.with_results, name)
        return FunctionItem(new_id("fc"), index, self.emit, call_id, name)

    def _number(self, call: Mapping[str, Any]) -> int:
        """Return the number of a call; some services leave it out, and give each call an id instead."""
        if isinstance(call.get("index"), int):
            return int(call["index"])
        numbers = {each.call_id: number for number, each in self.round.calls.items()}
        last = max(numbers.values(), default=-1)
        call_id = call.get("id")
        return numbers.get(call_id, last + 1) if call_id else max(last, 0)

    def _add(self, item: OutputItem) -> None:
        self.items.append(item)
        self.round.items.append(item)


def _text(content: Any) -> str:
    """Return a text that some services send in parts; empty for anything else."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in _objects(content) if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(values: Any) -> list[Mapping[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _tokens(usage: Mapping[str, Any]) -> Sequence[int]:
    """Return tokens read and written, and of these: read from a cache, written to it, of thoughts."""
    asked = _object(usage.get("prompt_tokens_details"))
    written = _object(usage.get("completion_tokens_details"))
    numbers = (
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        asked.get("cached_tokens"),
        asked.get("cache_write_tokens"),
        written.get("reasoning_tokens"),
    )
    return [each if isinstance(each, int) and each >= 0 else 0 for each in numbers]
