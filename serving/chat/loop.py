"""The loop of a turn: the model answers, or calls tools of the proxy and is asked again, a bounded number of times."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from parquetry.serving.chat.event_stream import ServerEvent
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.relay import SEPARATOR, SOURCES, StreamRelay
from parquetry.serving.chat.tool_calls import own_calls
from parquetry.serving.chat.turn import ProxyTurn
from parquetry.serving.chat.upstream import Sender, Upstream, UpstreamAnswer
from parquetry.serving.chat.usage import added_usage

log = logging.getLogger("parquetry")
T = TypeVar("T")
MOST_ROUNDS = 8
"""requests of a turn after the first one"""
_ABOUT_TOOLS = frozenset({400, 404, 422, 500, 501})
"""statuses with which services answer that a model takes no tools"""
Ask = Callable[[dict[str, Any], Sender], Awaitable[T]]


async def answer_whole(turn: ProxyTurn, upstream: Upstream, sender: Sender) -> dict[str, Any]:
    """Return the answer to a turn, with its sources.

    Raises:
        UpstreamFailed: the model service failed, or refused a request.
        ParquetryError: a call could not be carried out.
    """
    value = await _first(turn, upstream, sender, upstream.complete)
    spent: dict[str, Any] = {}
    said: list[str] = []
    for number in range(1, MOST_ROUNDS + 2):
        message = _message(value)
        calls = message.get("tool_calls")
        calls = calls if isinstance(calls, list) else []
        own = own_calls(calls, turn.own_names)
        spent = added_usage(spent, value["usage"]) if isinstance(value.get("usage"), dict) else spent
        theirs = [call for call in calls if not own_calls([call], turn.own_names)]
        if not own or theirs:
            return _finished(turn, value, message, theirs, said, spent)
        if number > MOST_ROUNDS:
            raise _endless()
        if isinstance(message.get("content"), str) and message["content"]:
            said.append(message["content"])
        shown = {**message, "role": "assistant", "tool_calls": [each for _, each in own]}
        await turn.carry_out(shown, [call for call, _ in own])
        value = await upstream.complete(turn.request(last=number == MOST_ROUNDS), sender)
    raise AssertionError("the loop ends by itself")


def _message(value: dict[str, Any]) -> dict[str, Any]:
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise UpstreamFailed("upstream-broken", "the model service sent an answer without a choice")
    return message


def _finished(
    turn: ProxyTurn,
    value: dict[str, Any],
    message: dict[str, Any],
    theirs: list[Any],
    said: list[str],
    spent: dict[str, Any],
) -> dict[str, Any]:
    if "tool_calls" in message and turn.own_names:
        message["tool_calls"] = theirs
        if not theirs:
            del message["tool_calls"]
    if said:
        last = [message["content"]] if isinstance(message.get("content"), str) and message["content"] else []
        message["content"] = SEPARATOR.join([*said, *last])
    if spent:
        value["usage"] = spent
    value.pop(SOURCES, None)
    if not turn.is_plain:
        value[SOURCES] = turn.sources.as_json()
    return value


async def open_stream(turn: ProxyTurn, upstream: Upstream, sender: Sender) -> UpstreamAnswer:
    """Return the beginning of a streamed answer to a turn; failures until then have a status of their own.

    Raises:
        UpstreamFailed: the model service failed, or refused the request.
    """
    return await _first(turn, upstream, sender, upstream.stream)


async def answer_streamed(
    turn: ProxyTurn, upstream: Upstream, sender: Sender, opened: UpstreamAnswer, relay: StreamRelay
) -> AsyncIterator[bytes]:
    """Yield the stream for the client.

    Args:
        turn: the turn.
        upstream: the model service.
        sender: key and headers.
        opened: as `open_stream` returned it; closed at the end, also of a client that is gone.
        relay: the relay of this turn.

    Raises:
        UpstreamFailed: the model service failed in the middle.
        ParquetryError: a call could not be carried out.
    """
    answer = opened
    try:
        for number in range(1, MOST_ROUNDS + 2):
            async for events in answer.batches():
                block, failure = _fed(relay, events)
                if block:
                    yield block
                if failure is not None:
                    raise failure
            asked = relay.next_calls()
            if asked is None:
                break
            if number > MOST_ROUNDS:
                raise _endless()
            await answer.drain()
            await turn.carry_out(*asked)
            answer = await upstream.stream(turn.request(last=number == MOST_ROUNDS), sender)
        yield relay.finish()
        await answer.drain()
    finally:
        answer.close()


def _fed(relay: StreamRelay, events: list[ServerEvent]) -> tuple[bytes, UpstreamFailed | None]:
    """Return what the client gets for events, also of those before a failure."""
    block = bytearray()
    try:
        for event in events:
            block += relay.feed(event)
    except UpstreamFailed as error:
        return bytes(block), error
    return bytes(block), None


def relay_of(turn: ProxyTurn, upstream: Upstream, sender: Sender) -> StreamRelay:
    """Return the relay for a turn."""
    sources = None if turn.is_plain else turn.sources.as_json
    most = upstream.max_answer_bytes
    return StreamRelay(turn.own_names, turn.client_names, sources, own_key=sender.is_own, most_kept=most)


async def _first(turn: ProxyTurn, upstream: Upstream, sender: Sender, ask: Ask[T]) -> T:
    """Ask for the first time; without the proxy's tools again, if the model takes none."""
    try:
        return await ask(turn.request(), sender)
    except UpstreamFailed as error:
        is_about_tools = error.status in _ABOUT_TOOLS and "tool" in error.detail.lower()
        if not turn.own_names or turn.client_names or not is_about_tools:
            raise
        turn.tools = None
        found = await ask(turn.request(), sender)
        model = str(turn.body.get("model"))[:200]
        log.warning("the model %s takes no tools, so it is offered none: %s", model, error.detail[:200])
        upstream.takes_no_tools(model)
        return found


def _endless() -> UpstreamFailed:
    return UpstreamFailed("upstream-broken", f"the model still calls tools after {MOST_ROUNDS} rounds of them")
