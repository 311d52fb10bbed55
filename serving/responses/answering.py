"""One response: the model is asked, its searches are carried out, and it is asked again, within bounds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.responses.asking import ResponseRequest
from parquetry.serving.responses.messages import with_instructions
from parquetry.serving.responses.parts import Event, SearchItem
from parquetry.serving.responses.searching import (
    FaultyCall,
    FoundExcerpt,
    instructions,
    queries_of,
    results_for_model,
)
from parquetry.serving.responses.tools import offered
from parquetry.serving.responses.transcript import ResponseTranscript

MOST_ROUNDS = 8
"""requests to the model for one response"""
Ask = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[AsyncIterator[Mapping[str, Any]]]]
"""body of a chat completion -> its chunks, or the whole of it as the only one"""
Search = Callable[[Sequence[str]], Awaitable[Sequence[FoundExcerpt]]]
"""queries -> results, best first"""
_NOT_SEARCHED = "Not searched: this response allows no more searches. Answer from what you have."


@dataclass(frozen=True, slots=True)
class Answering:
    """A response in work."""

    request: ResponseRequest
    transcript: ResponseTranscript
    model: str
    """name that the model service knows"""
    ask: Ask
    search: Search
    """of the stores that the request names"""

    async def events(self, messages: list[dict[str, Any]]) -> AsyncGenerator[Event]:
        """Yield the events of the response, but for the last; the first comes once the model service has answered.

        Args:
            messages: messages of the conversation.

        Raises:
            ParquetryError: the response cannot be completed.
        """
        conversation = with_instructions(messages, self.request.instructions, self._instructions())
        calls = 0
        for number in range(MOST_ROUNDS):
            searches = number < MOST_ROUNDS - 1 and calls < (self.request.max_tool_calls or MOST_ROUNDS)
            async with self.ask(self._body(conversation, number, searches=searches)) as chunks:
                if number == 0:
                    for event in self.transcript.open():
                        yield event
                self.transcript.begin_round()
                async for chunk in chunks:
                    for event in self.transcript.take(chunk):
                        yield event
            _check_complete(self.transcript)
            for event in self.transcript.end_round():
                yield event
            asked = self.transcript.round.searches
            if self.transcript.cut is not None or not asked:
                return
            conversation.append(self.transcript.round.said())
            for item in asked:
                allowed = searches and calls < (self.request.max_tool_calls or len(asked) + calls + 1)
                calls += 1
                told = {"role": "tool", "tool_call_id": item.call_id, "content": _NOT_SEARCHED}
                async for event in self._searched(item, told, allowed=allowed):
                    yield event
                conversation.append(told)
            if self.transcript.round.has_functions:
                # The client has its functions to call, and comes back with what they return.
                return
            if self._used_up():
                self.transcript.round.finish = "length"
                return
        raise UpstreamFailed(
            "upstream-broken", "the model asked for searches without end; ask it again, or another one"
        )

    async def _searched(self, item: SearchItem, told: dict[str, Any], *, allowed: bool) -> AsyncIterator[Event]:
        """Carry out one call; the message for the model is changed in place."""
        try:
            queries = queries_of(item.arguments)
        except FaultyCall as fault:
            told["content"] = str(fault)
            for event in item.close("failed"):
                yield event
            return
        if not allowed:
            for event in item.close("incomplete"):
                yield event
            return
        for event in item.search(queries):
            yield event
        found = await self.search(queries)
        told["content"] = results_for_model(found, self.transcript.files)
        for event in item.found([each.shown() for each in found]):
            yield event

    def _instructions(self) -> str | None:
        tool = self.request.tools.file_search
        return None if tool is None else instructions(tool.function, citing=not self.request.is_json)

    def _body(self, conversation: Sequence[Mapping[str, Any]], number: int, *, searches: bool) -> dict[str, Any]:
        request = self.request
        body = {
            "model": self.model,
            "messages": list(conversation),
            "stream": request.stream,
            **request.chat,
            **offered(request.tools, request.choice, searches=searches, forced=number == 0),
        }
        if request.stream:
            body["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            body["max_tokens"] = request.max_output_tokens - (self.transcript.output_tokens or 0)
        return body

    def _used_up(self) -> bool:
        most, used = self.request.max_output_tokens, self.transcript.output_tokens
        return most is not None and used is not None and used >= most


def _check_complete(transcript: ResponseTranscript) -> None:
    """Refuse an answer whose end is missing.

    Raises:
        UpstreamFailed: it is incomplete.
    """
    if transcript.round.finish is None:
        raise UpstreamFailed("upstream-cut", "the model service ended its answer before its end; try again")
    if transcript.round.waiting:
        raise UpstreamFailed("upstream-broken", "the model service asked for a tool without naming it; try again")
