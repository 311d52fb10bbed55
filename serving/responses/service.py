"""Responses for one caller: the conversation that a request goes on with, its answer, and what is kept of it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from anyio.to_thread import run_sync

from parquetry.errors import ParquetryError
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible, UnusableParameter
from parquetry.serving.chat.agents import ChatAgent
from parquetry.serving.chat.options import ChatRequest, RagOptions
from parquetry.serving.chat.retrieval import ChatScope
from parquetry.serving.chat.turn import begin_turn
from parquetry.serving.responses.answering import Answering, Ask
from parquetry.serving.responses.asking import ResponseRequest
from parquetry.serving.responses.file_search import FileSearcher
from parquetry.serving.responses.given import Given
from parquetry.serving.responses.messages import messages_of
from parquetry.serving.responses.parts import Event
from parquetry.serving.responses.searching import FoundExcerpt
from parquetry.serving.responses.transcript import ResponseTranscript, new_id
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.response_store import StoredResponse, owner_of
from parquetry.storage.search.searcher import Hit

log = logging.getLogger("parquetry")
_PREVIOUS = "previous_response_id"
_MOST_TURNS = 1000
"""responses of one conversation"""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The model that answers."""

    ask: Ask
    agent: ChatAgent | None = None
    """agent that the request names as its model"""
    scope: ChatScope | None = None
    """documents that the agent may use; None without an agent"""


@dataclass(frozen=True, slots=True)
class OpenResponse:
    """A request whose conversation is known and whose stores exist for its caller."""

    resources: Resources
    principal: Principal
    request: ResponseRequest
    messages: list[dict[str, Any]]
    answering: Answering
    search: FileSearcher | None
    hits: Sequence[Hit]
    """chunks that an agent found for the question"""
    stored: bool

    async def whole(self) -> Mapping[str, Any]:
        """Return the whole response.

        Raises:
            ParquetryError: it cannot be completed.
        """
        async with aclosing(self.answering.events(self.messages)) as events:
            async for _ in events:
                pass
        response = self.answering.transcript.ended()
        await self._keep(response)
        return response

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the events of the response.

        Raises:
            ParquetryError: it cannot be begun, or completed: `failed` returns the events for a client that waits.
        """
        async with aclosing(self.answering.events(self.messages)) as events:
            async for event in events:
                yield event
        # An event that is not sent must not take a number.
        response = self.answering.transcript.ended()
        await self._keep(response)
        yield self.answering.transcript.finish(response)

    def failed(self, error: BaseException) -> Iterable[Event]:
        """Return the last events of a response that an error ends after it has begun."""
        known = isinstance(error, ParquetryError)
        if known:
            log.warning("a response failed: %s", error)
        else:
            log.error("a response failed: %s", type(error).__name__, exc_info=error)
        detail = str(error) if known else f"the response failed ({type(error).__name__}); the service's log has more"
        return self.answering.transcript.fail("server_error", detail)

    async def _keep(self, response: Mapping[str, Any]) -> None:
        if not self.stored:
            return
        items = [_kept_item(each.value) for each in self.request.items]
        stored = StoredResponse(response["id"], self.request.previous_response_id, items, response)
        limits = self.resources.settings.upstream
        save = self.resources.responses.save
        await run_sync(save, stored, self.principal, limits.response_days, limits.max_responses)


async def open_response(
    resources: Resources, principal: Principal, request: ResponseRequest, speaker: Speaker
) -> OpenResponse:
    """Prepare the answer to a request.

    Args:
        resources: parts of the service.
        principal: maker of the request.
        request: the request.
        speaker: the model.

    Raises:
        UnusableParameter: the conversation cannot be gone on with, or the response cannot be kept.
        NotVisible: a store does not exist for the principal.
        ParquetryError: the responses, the stores or the corpus cannot be read.
    """
    stored = _is_stored(resources, principal, request)
    earlier = await run_sync(_history, resources, principal, request.previous_response_id)
    messages = messages_of([*earlier, *request.items])
    if not messages:
        raise Given(None, "input").wrong_type("a text, or a list of items")
    tool = request.tools.file_search
    search = None if tool is None else FileSearcher(resources, principal, tool)
    if search is not None:
        await search.check()
    model = request.model
    hits: Sequence[Hit] = ()
    if speaker.agent is not None and speaker.scope is not None:
        asked = ChatRequest(RagOptions(rag_enable_tools=False), {"model": model, "messages": messages})
        turn = await begin_turn(resources, asked, speaker.scope, speaker.agent, without_tools=True)
        model, messages, hits = speaker.agent.settings.model, turn.request()["messages"], turn.hits
    transcript = ResponseTranscript(request, new_id("resp"), stored=stored)
    answering = Answering(request, transcript, model, speaker.ask, search or _no_search)
    return OpenResponse(resources, principal, request, messages, answering, search, hits, stored)


async def _no_search(queries: Sequence[str]) -> Sequence[FoundExcerpt]:
    raise AssertionError(f"no tool searches: {queries}")


def no_such_response(response_id: str) -> NotVisible:
    """Return the refusal for a response that does not exist, or not for the caller: one text for both."""
    return NotVisible(
        "no-such-response", f"no response {response_id[:80]!r}; only those that were stored can be asked for"
    )


def _is_stored(resources: Resources, principal: Principal, request: ResponseRequest) -> bool:
    if request.store is False:
        return False
    wanted = Given(request.store, "store")
    if owner_of(principal) is None:
        if wanted:
            raise wanted.refused("needs a token of this service, whose response it will be; leave it out")
        return False
    if not resources.settings.upstream.response_days:
        if wanted:
            raise wanted.refused("is not possible: this service keeps no responses (upstream.response_days)")
        return False
    return True


def _history(resources: Resources, principal: Principal, response_id: str | None) -> list[Given]:
    """Return the items of a conversation up to a response, the oldest first."""
    turns: list[StoredResponse] = []
    while response_id is not None:
        found = resources.responses.get(response_id, principal)
        if found is None:
            detail = f"{_PREVIOUS}: no response {response_id[:80]!r}, which was not stored, has expired or was deleted"
            raise UnusableParameter("previous-response-not-found", detail, _PREVIOUS)
        turns.append(found)
        if len(turns) > _MOST_TURNS:
            raise Given(response_id, _PREVIOUS).invalid(f"goes on from more than {_MOST_TURNS} responses")
        response_id = found.previous
    return [Given(item, _PREVIOUS) for turn in reversed(turns) for item in _items(turn)]


def _items(turn: StoredResponse) -> Iterable[Any]:
    return (*turn.input, *turn.response["output"])


def _kept_item(item: Any) -> Any:
    """Return an item of the input as it is kept: with an id, and its content in parts."""
    kind = item.get("type") or "message"
    prefix = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}.get(kind, "item")
    kept = {"type": kind, "id": new_id(prefix), **{name: value for name, value in item.items() if value is not None}}
    if kind == "message" and isinstance(kept["content"], str):
        kept["content"] = [_text_part(kept["role"], kept["content"])]
    if kind in ("message", "function_call", "function_call_output"):
        kept.setdefault("status", "completed")
    return kept


def _text_part(role: str, text: str) -> Mapping[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}
