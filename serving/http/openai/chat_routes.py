"""`POST /v1/chat/completions`: the chat proxy."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from parquetry.serving.access.principals import Principal
from parquetry.serving.chat.agents import Agents
from parquetry.serving.chat.event_stream import encoded
from parquetry.serving.chat.loop import answer_streamed, answer_whole, open_stream, relay_of
from parquetry.serving.chat.options import ChatRequest, chat_request, question_of
from parquetry.serving.chat.retrieval import scope_of
from parquetry.serving.chat.turn import ProxyTurn, begin_turn
from parquetry.serving.chat.upstream import Sender, Upstream, UpstreamAnswer, no_upstream
from parquetry.serving.chat.usage import tokens_of
from parquetry.serving.http.answers import GONE, Recorded, outcome_of
from parquetry.serving.http.callers import NAMESPACE_HEADER, Parts, SearchCaller, namespace_of
from parquetry.serving.http.openai.errors import error_object
from parquetry.serving.http.openai.sending import (
    ClientGone,
    ModelService,
    RelayedResponse,
    coming,
    gone_answer,
    json_object,
    sender_of,
    unless_gone,
)
from parquetry.serving.http.problems import Problem, invalid_request, problem_of
from parquetry.serving.service.resources import Resources

log = logging.getLogger("parquetry")
router = APIRouter(prefix="/v1", tags=["chat"], include_in_schema=False)
Begin = Callable[[], Awaitable[ProxyTurn]]
_STREAM_HEADERS = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


@router.post("/chat/completions")
async def complete_chat(request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService) -> Response:
    """Pass a chat on to its model, with what the corpus knows about the question."""
    if not upstream.is_configured:
        raise no_upstream()
    sender = sender_of(request, caller, upstream)
    asked = _read(await json_object(request))
    record = Recorded(request, caller, "knowledge.query", None)
    try:
        begin = partial(_begun, request, parts, caller, upstream, asked, record)
        if asked.body.get("stream"):
            stream = await unless_gone(request, _opened(begin, upstream, sender, record))
            return RelayedResponse(stream.blocks(), stream.ended, headers=stream.headers)
        turn, value = await unless_gone(request, _whole(begin, upstream, sender))
    except ClientGone:
        record.left(_question(asked))
        return gone_answer()
    except Exception as error:
        record.failed(error, _question(asked))
        raise
    usage = value.get("usage")
    record.answered(turn.all_hits, turn.all_queries, status=200)
    record.spent(*tokens_of(usage if isinstance(usage, dict) else {}))
    return JSONResponse(value)


def _question(asked: ChatRequest) -> list[str]:
    question, _ = question_of(asked.messages)
    return [question] if question else []


def _read(given: dict[str, Any]) -> ChatRequest:
    try:
        asked = chat_request(given)
    except ValidationError as error:
        raise invalid_request([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    messages = asked.body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise Problem(400, "invalid-request", "messages: a list of messages is needed", param="messages")
    if not isinstance(asked.body.get("model"), str):
        raise Problem(400, "invalid-request", "model: the name of a model or agent is needed", param="model")
    return asked


async def _begun(
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, asked: ChatRequest, record: Recorded
) -> ProxyTurn:
    agents: Agents = request.app.state.agents
    agent = agents.find(asked.body["model"], caller)
    named = (asked.options.rag_namespace, request.query_params.get("namespace"), request.headers.get(NAMESPACE_HEADER))
    scope = scope_of(parts, caller, asked.options, agent, lambda: namespace_of(parts, caller, *named))
    record.namespace = scope.namespace
    model = asked.body["model"] if agent is None else agent.settings.model
    return await begin_turn(parts, asked, scope, agent, without_tools=upstream.is_toolless(model))


async def _whole(begin: Begin, upstream: Upstream, sender: Sender) -> tuple[ProxyTurn, dict[str, Any]]:
    turn = await begin()
    return turn, await answer_whole(turn, upstream, sender)


async def _opened(begin: Begin, upstream: Upstream, sender: Sender, record: Recorded) -> ChatStream:
    turn = await begin()
    return ChatStream(turn, upstream, sender, await open_stream(turn, upstream, sender), record)


class ChatStream:
    """A streamed answer, which the model service has begun."""

    def __init__(
        self, turn: ProxyTurn, upstream: Upstream, sender: Sender, answer: UpstreamAnswer, record: Recorded
    ) -> None:
        self._turn, self._upstream, self._sender = turn, upstream, sender
        self._answer, self._record = answer, record
        self._relay = relay_of(turn, upstream, sender)
        self._outcome: tuple[int, str | None] = (GONE, None)
        """status and reason, until others are known"""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [*coming(self._answer.raw_headers), *_STREAM_HEADERS]

    async def blocks(self) -> AsyncGenerator[bytes]:
        """Yield the stream for the client."""
        try:
            async for block in answer_streamed(self._turn, self._upstream, self._sender, self._answer, self._relay):
                yield block
            self._outcome = (200, None)
        except Exception as error:  # noqa: BLE001 - the edge of a stream that has begun: its client learns of any error
            self._outcome = outcome_of(error)
            yield encoded({"error": error_object(problem_of(error))})

    async def ended(self) -> None:
        """End the request to the model service, and record the chat."""
        self._answer.close()
        status, reason = self._outcome
        self._record.answered(self._turn.all_hits, self._turn.all_queries, status=status, reason=reason)
        self._record.spent(*tokens_of(self._relay.usage))
