"""One well-formed stream for the client, out of the streams of all requests that a turn makes.

The bytes of the model service are passed on as they came, but for three things: the last chunk with a choice carries
the sources; calls of the proxy's own tools are left out; and what follows after such calls continues the first answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from parquetry.plural import size_of
from parquetry.serving.chat.event_stream import ServerEvent, encoded
from parquetry.serving.chat.failures import UpstreamFailed, refusal
from parquetry.serving.chat.tool_calls import StreamedCalls
from parquetry.serving.chat.tools import ToolCall
from parquetry.serving.chat.usage import added_usage

SOURCES = "rag_sources"
_DONE = b"data: [DONE]\n\n"
_SHARED = ("id", "created", "model", "system_fingerprint")
"""members that all chunks of a stream have in common"""
SEPARATOR = "\n\n"
"""between what a model said before it called a tool, and after"""


class StreamRelay:
    """The stream of one turn.

    Args:
        own: names of the proxy's tools.
        clients: names of the client's tools.
        sources: returns the sources of the answer; None if nothing was looked up.
        own_key: as for `refusal`.
        most_kept: bytes of a stream that may be kept, for the calls of tools in it and for its end.
    """

    def __init__(
        self,
        own: frozenset[str],
        clients: frozenset[str],
        sources: Callable[[], list[dict[str, Any]]] | None,
        *,
        own_key: bool,
        most_kept: int,
    ) -> None:
        self._own, self._clients, self._sources, self._own_key = own, clients, sources, own_key
        self._most_kept = most_kept
        self._round = 0
        self._first: dict[str, Any] = {}
        """members of the first chunk"""
        self._said_role = self._said_text = False
        self._spent: dict[str, Any] = {}
        """usage of earlier requests"""
        self._text: list[str] = []
        """text of the model in this request, if it may call tools, as far as `most_kept` allows"""
        self._begin()

    def _begin(self) -> None:
        self._calls = StreamedCalls(self._own, self._clients)
        self._held: tuple[bytes, dict[str, Any]] | None = None
        """a chunk that may be the last one with a choice: its bytes and its value"""
        self._tail = b""
        """chunks without a choice, which follow the one that is held"""
        self._done: bytes | None = None
        self._answered = False
        self._open: set[Any] = set()
        """numbers of the choices that have not ended"""
        self._usage: dict[str, Any] = {}
        self._kept = 0
        """characters of the text, whether it is kept or not"""
        self._text.clear()
        self._continues = self._said_text

    @property
    def usage(self) -> dict[str, Any]:
        """Tokens of all requests of the turn, as far as the model service told them."""
        return added_usage(self._spent, self._usage)

    def feed(self, event: ServerEvent) -> bytes:
        """Add an event of the model service; return what the client gets now.

        Raises:
            UpstreamFailed: it is an error, or unusable.
        """
        if event.data is None:
            return event.raw
        if event.is_done:
            self._done = event.raw
            return b""
        value = event.json()
        if value.get("error"):
            raise refusal(502, json.dumps(value).encode(), own_key=self._own_key)
        changed = value.pop(SOURCES, None) is not None
        if isinstance(value.get("usage"), dict):
            self._usage = value["usage"]
        if self._round:
            changed = True
            value |= {name: self._first[name] for name in _SHARED if name in self._first and name in value}
            if isinstance(value.get("usage"), dict):
                value["usage"] = self.usage
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return self._without_choice(value, encoded(value) if changed else event.raw)
        self._answered = True
        self._first = self._first or {name: value[name] for name in _SHARED if name in value}
        if self._own:
            changed |= self._sort_out(choices[0])
            if changed and _is_empty(choices[0]):
                return b""
        raw = encoded(value) if changed else event.raw
        if self._notes_end(choices):
            return self._release((raw, value))
        return self._release(None) + raw

    def _notes_end(self, choices: list[Any]) -> bool:
        """Return True if a choice ends."""
        ended = False
        for choice in choices:
            if isinstance(choice, dict):
                if choice.get("finish_reason"):
                    ended = True
                    self._open.discard(choice.get("index"))
                elif choice.get("delta"):
                    self._open.add(choice.get("index"))
        return ended

    def _without_choice(self, value: Mapping[str, Any], raw: bytes) -> bytes:
        # Whether this request is the last of the turn is known at its end.
        if self._held is None and not (self._own and value.get("usage")):
            return raw
        self._tail += raw
        if len(self._tail) > self._most_kept:
            raise UpstreamFailed("upstream-broken", "the model service sent too much after the end of its answer")
        return b""

    def _release(self, hold: tuple[bytes, dict[str, Any]] | None) -> bytes:
        """Return the chunk that was held and what followed it, and hold another."""
        before = b"" if self._held is None else self._held[0] + self._tail
        if self._held is not None:
            self._tail = b""
        self._held = hold
        return before

    def _sort_out(self, choice: dict[str, Any]) -> bool:
        """Take what belongs to the proxy out of a choice; return True if it has changed."""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return False
        changed = False
        calls = delta.get("tool_calls")
        if isinstance(calls, list) and calls:
            passed = self._calls.feed(calls)
            changed = passed != calls
            if changed:
                delta["tool_calls"] = passed
        if choice.get("finish_reason"):
            if rest := self._calls.rest():
                delta["tool_calls"], changed = [*(delta.get("tool_calls") or ()), *rest], True
            if self._calls.own and not self._calls.has_clients:
                # The answer goes on after the calls.
                choice["finish_reason"], changed = None, True
        if delta.get("tool_calls") == []:
            del delta["tool_calls"]
        return self._joined(delta) or changed

    def _joined(self, delta: dict[str, Any]) -> bool:
        changed = False
        if delta.get("role"):
            if self._said_role and self._round:
                del delta["role"]
                changed = True
            self._said_role = True
        text = delta.get("content")
        if isinstance(text, str) and text:
            self._kept += len(text)
            if self._kept <= self._most_kept:
                self._text.append(text)
            else:
                self._text.clear()
            if self._continues:
                delta["content"], changed = SEPARATOR + text, True
                self._continues = False
            self._said_text = True
        return changed

    def next_calls(self) -> tuple[dict[str, Any], list[ToolCall]] | None:
        """Return the model's message and its calls, if the proxy has to carry them out; begins the next request.

        Returns:
            None if the answer is whole.

        Raises:
            UpstreamFailed: the model said more before its calls than is kept, and could not be shown its own words.
        """
        own = self._calls.own
        if not own or self._calls.has_clients:
            return None
        if self._kept > self._most_kept:
            most = size_of(self._most_kept)
            raise UpstreamFailed("upstream-broken", f"the model called a tool after more than {most} of text")
        message = {"role": "assistant", "content": "".join(self._text), "tool_calls": [shown for _, shown in own]}
        self._spent = self.usage
        self._round += 1
        self._begin()
        return message, [call for call, _ in own]

    def finish(self) -> bytes:
        """Return the end of the stream.

        Raises:
            UpstreamFailed: the model service broke off its answer, or gave none.
        """
        if self._done is None and (self._open or not self._answered):
            raise UpstreamFailed("upstream-cut", "the model service ended its answer in the middle")
        if not self._answered:
            raise UpstreamFailed("upstream-broken", "the model service sent a stream without an answer")
        last = b"" if self._held is None else self._held[0]
        if self._sources is not None:
            value = self._made() if self._held is None else self._held[1]
            last = encoded({**value, SOURCES: self._sources()})
        return last + self._tail + (self._done or _DONE)

    def _made(self) -> dict[str, Any]:
        """Return a chunk for the sources, where none of the model service's ends the answer."""
        choice = {"index": 0, "delta": {}, "finish_reason": None}
        return {**self._first, "object": "chat.completion.chunk", "choices": [choice]}


def _is_empty(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    return not choice.get("finish_reason") and isinstance(delta, dict) and not any(delta.values())
