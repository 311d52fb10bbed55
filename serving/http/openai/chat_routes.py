"""`POST /v1/chat/completions`: the chat proxy."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from parquetry.errors import ParquetryError
from parquetry.serving.access.principals import Principal
from parquetry.serving.chat.agents import Agents
from parquetry.serving.chat.event_stream import encoded
from parquetry.serving.chat.loop import answer_streamed, answer_whole, open_stream, relay_of
from parquetry.serving.chat.options import ChatRequest, chat_request
from parquetry.serving.chat.relay import StreamRelay
from parquetry.serving.chat.retrieval import ChatScope, scope_of
from parquetry.serving.chat.turn import ProxyTurn, begin_turn
from parquetry.serving.chat.upstream import Sender, Upstream, UpstreamAnswer, no_upstream
from parquetry.serving.chat.usage import tokens_of
from parquetry.serving.http.answers import Recorded
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
_STREAM_HEADERS = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


@router.post("/chat/completions")
async def complete_chat(request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService) -> Response:
    """Pass a chat on to its model, with what the corpus knows about the question."""
    if not upstream.is_configured:
        raise no_upstream()
    sender = sender_of(request, caller, upstream)
    asked = _read(await json_object(request))
    try:
        scope, turn = await unless_gone(request, _begun(request, parts, caller, upstream, asked))
        record = Recorded(request, caller, "knowledge.query", scope.namespace)
        if asked.body.get("stream"):
            answer = await unless_gone(request, open_stream(turn, upstream, sender))
            headers = [*coming(answer.raw_headers), *_STREAM_HEADERS]
            return RelayedResponse(_stream(turn, upstream, sender, answer, record), headers=headers)
        value = await unless_gone(request, answer_whole(turn, upstream, sender))
    except ClientGone:
        return gone_answer()
    usage = value.get("usage")
    _record(record, turn, usage if isinstance(usage, dict) else {})
    return JSONResponse(value)


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
    request: Request, parts: Resources, caller: Principal, upstream: Upstream, asked: ChatRequest
) -> tuple[ChatScope, ProxyTurn]:
    agents: Agents = request.app.state.agents
    agent = agents.find(asked.body["model"], caller)
    named = (asked.options.rag_namespace, request.query_params.get("namespace"), request.headers.get(NAMESPACE_HEADER))
    scope = scope_of(parts, caller, asked.options, agent, lambda: namespace_of(parts, caller, *named))
    model = asked.body["model"] if agent is None else agent.settings.model
    return scope, await begin_turn(parts, asked, scope, agent, without_tools=upstream.is_toolless(model))


async def _stream(
    turn: ProxyTurn, upstream: Upstream, sender: Sender, answer: UpstreamAnswer, record: Recorded
) -> AsyncIterator[bytes]:
    relay: StreamRelay = relay_of(turn, sender)
    try:
        async for block in answer_streamed(turn, upstream, sender, answer, relay):
            yield block
    except ParquetryError as error:
        yield encoded({"error": error_object(problem_of(error))})
    except Exception as error:
        # The edge of a stream that has begun: its client learns that the answer is not whole.
        yield encoded({"error": error_object(problem_of(error))})
        raise
    finally:
        answer.close()
        _record(record, turn, relay.usage)


def _record(record: Recorded, turn: ProxyTurn, usage: dict[str, Any]) -> None:
    record.answered(turn.all_hits, turn.all_queries)
    record.spent(*tokens_of(usage))
