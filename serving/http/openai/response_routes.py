"""`/v1/responses`: OpenAI's Responses API, with `file_search` over our vector stores."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from parquetry.serving.access.principals import Principal
from parquetry.serving.chat.agents import Agents
from parquetry.serving.chat.options import RagOptions
from parquetry.serving.chat.retrieval import scope_of
from parquetry.serving.chat.upstream import Sender, Upstream, no_upstream
from parquetry.serving.http.answers import GONE, Recorded, outcome_of
from parquetry.serving.http.callers import NAMESPACE_HEADER, Parts, SearchCaller, namespace_of
from parquetry.serving.http.openai.passthrough_routes import pass_on
from parquetry.serving.http.openai.sending import (
    ClientGone,
    ModelService,
    RelayedResponse,
    gone_answer,
    json_object,
    sender_of,
    unless_gone,
)
from parquetry.serving.http.openai.shapes import list_shape
from parquetry.serving.responses.asking import request_of
from parquetry.serving.responses.chat_model import ChatModel
from parquetry.serving.responses.given import Given
from parquetry.serving.responses.parts import Event
from parquetry.serving.responses.service import (
    OpenResponse,
    Speaker,
    no_such_response,
    open_response,
)
from parquetry.serving.service.resources import Resources

router = APIRouter(prefix="/v1/responses", tags=["responses"], include_in_schema=False)
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


@router.post("")
async def create_response(request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService) -> Response:
    """Answer a request by a model of the model service, or by an agent."""
    if not upstream.is_configured:
        raise no_upstream()
    sender = sender_of(request, caller, upstream)
    given = await json_object(request)
    if parts.settings.upstream.native_responses and await _is_native(request, parts, caller, sender, given):
        return await pass_on(request, caller, upstream, await request.body(), keeps_nothing=_keeps_nothing(given))
    record = Recorded(request, caller, "knowledge.query", None)
    opened = None
    try:
        opened = await unless_gone(request, _opened(request, parts, caller, upstream, sender, given))
        if opened.request.stream:
            events = opened.events()
            first = await unless_gone(request, _first(events))
            stream = ResponseStream(first, events, opened, record)
            return RelayedResponse(stream.blocks(), stream.ended, headers=_HEADERS)
        response = await unless_gone(request, opened.whole())
    except ClientGone:
        record.left(_queries(opened))
        return gone_answer()
    except Exception as error:
        record.failed(error, _queries(opened))
        raise
    _record(record, opened, 200)
    return JSONResponse(response)


async def _is_native(
    request: Request, parts: Resources, caller: Principal, sender: Sender, given: dict[str, Any]
) -> bool:
    """Return True if the model service answers a request itself.

    What is kept there under the one key of this service belongs to nobody: only administrators keep it there.
    """
    tools, previous = given.get("tools"), given.get("previous_response_id")
    kinds = [tool.get("type") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    agents: Agents = request.app.state.agents
    if "file_search" in kinds or agents.find(given.get("model"), caller) is not None:
        return False
    if isinstance(previous, str) and await run_sync(parts.responses.get, previous, caller) is not None:
        return False
    return _keeps_nothing(given) or not sender.is_own or caller.may("admin")


def _keeps_nothing(given: dict[str, Any]) -> bool:
    """Return True for a request that keeps nothing at the model service, and reads nothing that is kept there."""
    reads = ("previous_response_id", "conversation", "prompt", "background")
    return given.get("store") is False and not any(given.get(name) for name in reads)


async def _opened(
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, sender: Sender, given: dict[str, Any]
) -> OpenResponse:
    asked = request_of(given)
    model = ChatModel(upstream, sender, str(parts.settings.upstream.base_url))
    agents: Agents = request.app.state.agents
    agent = agents.find(asked.model, caller)
    if agent is None:
        return await open_response(parts, caller, asked, Speaker(model.ask))
    named = (request.query_params.get("namespace"), request.headers.get(NAMESPACE_HEADER))
    scope = scope_of(parts, caller, RagOptions(), agent, lambda: namespace_of(parts, caller, *named))
    return await open_response(parts, caller, asked, Speaker(model.ask, agent, scope))


async def _first(events: AsyncGenerator[Event]) -> Event:
    return await anext(events)


class ResponseStream:
    """A streamed response, which has begun."""

    def __init__(self, first: Event, events: AsyncGenerator[Event], opened: OpenResponse, record: Recorded) -> None:
        self._first, self._events = first, events
        self._opened, self._record = opened, record
        self._outcome: tuple[int, str | None] = (GONE, None)
        """status and reason, until others are known"""

    async def blocks(self) -> AsyncGenerator[bytes]:
        """Yield the stream for the client."""
        try:
            yield _encoded(self._first)
            async for event in self._events:
                yield _encoded(event)
            self._outcome = (200, None)
        except Exception as error:  # noqa: BLE001 - the edge of a stream that has begun: its client learns of any error
            self._outcome = outcome_of(error)
            for event in self._opened.failed(error):
                yield _encoded(event)

    async def ended(self) -> None:
        """End the request to the model service, and record the response."""
        await self._events.aclose()
        _record(self._record, self._opened, *self._outcome)


def _encoded(event: Event) -> bytes:
    data = json.dumps(event, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode("ascii")


def _queries(opened: OpenResponse | None) -> list[str]:
    return [] if opened is None or opened.search is None else opened.search.queries


def _record(record: Recorded, opened: OpenResponse, status: int, reason: str | None = None) -> None:
    hits = [*opened.hits, *([] if opened.search is None else opened.search.hits)]
    record.answered(hits, _queries(opened), status=status, reason=reason)
    usage = opened.answering.transcript.usage()
    if usage is not None:
        record.spent(usage["input_tokens"], usage["output_tokens"])


@router.get("/{response_id}")
async def get_response(
    request: Request,
    response_id: str,
    caller: SearchCaller,
    parts: Parts,
    upstream: ModelService,
    stream: bool = False,
) -> Response:
    """Return a response that was stored, as it was answered."""
    found = await run_sync(parts.responses.get, response_id, caller)
    if found is None:
        return await _theirs(request, response_id, caller, parts, upstream)
    if stream:
        raise Given(stream, "stream").refused("is not supported: only responses in work are streamed")
    return JSONResponse(found.response)


@router.get("/{response_id}/input_items")
async def list_input_items(
    request: Request,
    response_id: str,
    caller: SearchCaller,
    parts: Parts,
    upstream: ModelService,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
) -> Response:
    """List the input items of a response that was stored."""
    found = await run_sync(parts.responses.get, response_id, caller)
    if found is None:
        return await _theirs(request, response_id, caller, parts, upstream)
    items = list(found.input) if order == "asc" else list(reversed(found.input))
    if after is not None:
        ids = [each["id"] for each in items]
        if after not in ids:
            raise Given(after, "after").invalid("is the id of no input item of this response")
        items = items[ids.index(after) + 1 :]
    return JSONResponse(list_shape(items[:limit], has_more=len(items) > limit))


@router.delete("/{response_id}")
async def delete_response(
    request: Request, response_id: str, caller: SearchCaller, parts: Parts, upstream: ModelService
) -> Response:
    """Delete a response that was stored."""
    if not await run_sync(parts.responses.delete, response_id, caller):
        return await _theirs(request, response_id, caller, parts, upstream)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


@router.post("/{response_id}/cancel")
async def cancel_response(
    request: Request, response_id: str, caller: SearchCaller, parts: Parts, upstream: ModelService
) -> Response:
    """Refuse to cancel a response: it ends with its request."""
    if await run_sync(parts.responses.get, response_id, caller) is None:
        return await _theirs(request, response_id, caller, parts, upstream)
    raise Given(response_id, "response_id").refused("is no response in the background, and those alone are cancelled")


async def _theirs(
    request: Request, response_id: str, caller: Principal, parts: Resources, upstream: Upstream
) -> Response:
    """Ask a model service with responses of its own for one that is none of ours."""
    if upstream.is_configured and parts.settings.upstream.native_responses:
        return await pass_on(request, caller, upstream)
    raise no_such_response(response_id)
