"""Every other path of `/v1`: passed on to the model service as it is, both ways as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from parquetry.errors import ParquetryError
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.upstream import Sender, Upstream, UpstreamAnswer, no_upstream
from parquetry.serving.http.admission import record_refusal
from parquetry.serving.http.answers import GONE, Recorded, outcome_of
from parquetry.serving.http.callers import SearchCaller, resources_of
from parquetry.serving.http.openai.sending import (
    ClientGone,
    ModelService,
    RelayedResponse,
    check_no_token,
    coming,
    gone_answer,
    path_of,
    sender_of,
    unless_gone,
    without_token,
)
from parquetry.serving.http.problems import Problem

router = APIRouter(prefix="/v1", tags=["model service"], include_in_schema=False)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_SHORT = 1024 * 1024
"""bytes of a body that is read before it goes on"""
_PASSED = ("accept", "accept-encoding", "content-type", "range")
_STATELESS = frozenset(
    {
        "audio/speech", "audio/transcriptions", "audio/translations", "chat/completions", "completions", "embeddings",
        "images/edits", "images/generations", "images/variations", "messages", "messages/count_tokens", "moderations",
        "rerank",
    }
)  # fmt: skip
"""calls that keep nothing at the model service and show nothing of others"""


@router.api_route("/{path:path}", methods=_METHODS)
async def pass_on_request(request: Request, caller: SearchCaller, upstream: ModelService) -> Response:
    """Pass a request on."""
    return await pass_on(request, caller, upstream)


async def pass_on(
    request: Request,
    caller: Principal,
    upstream: Upstream,
    content: bytes | None = None,
    *,
    keeps_nothing: bool = False,
) -> Response:
    """Pass a request on to the model service.

    Args:
        request: the request.
        caller: its maker.
        upstream: the model service.
        content: its body, if that was read already.
        keeps_nothing: True if it is known to keep nothing at the model service, and to show nothing of others.

    Raises:
        AccessRefused: the caller brings no key, or may not make this call with the key of the service.
        UpstreamFailed: the model service failed, or answers with a redirect.
    """
    if not upstream.is_configured:
        raise no_upstream()
    path, query = path_of(request)
    sender = sender_of(request, caller, upstream)
    if not keeps_nothing:
        _check_right(request, caller, sender, path)
    record = Recorded(request, caller, "request.relayed", None)
    told: dict[str, Any] = {"target": f"{request.method} /v1/{path}", "upstream": upstream.address}
    try:
        answer = await _answered(request, upstream, sender, path, query, content)
        if 300 <= answer.status < 400 or (sender.is_own and answer.status in (401, 403)):
            raise await answer.refused(sender)
    except (ClientGone, ClientDisconnect):
        record.write(status=GONE, **told)
        return gone_answer()
    except (ParquetryError, Problem) as error:
        status, reason = outcome_of(error)
        record.write(status=status, reason=reason, **told)
        raise
    record.write(status=answer.status, **told)

    async def ended() -> None:
        answer.close()

    return RelayedResponse(_blocks(answer), ended, answer.status, coming(answer.raw_headers))


def _check_right(request: Request, caller: Principal, sender: Sender, path: str) -> None:
    """Let only administrators touch what callers keep at the model service under the one key of this service."""
    is_read = request.method == "GET" and (path == "models" or path.startswith("models/"))
    if sender.is_own and not is_read and not (request.method == "POST" and path in _STATELESS):
        try:
            caller.demand("admin")
        except AccessRefused as refusal:
            address = None if request.client is None else request.client.host
            record_refusal(resources_of(request), address, refusal, f"{request.method} /v1/{path}", caller)
            raise


async def _answered(
    request: Request, upstream: Upstream, sender: Sender, path: str, query: str, content: bytes | None
) -> UpstreamAnswer:
    headers = {name: value for name in _PASSED if (value := request.headers.get(name)) and value.isascii()}
    declared = request.headers.get("content-length", "")
    has_body = content is not None or declared not in ("", "0") or "transfer-encoding" in request.headers
    sending: dict[str, Any] = {"query": query, "headers": headers}
    if not has_body:
        return await unless_gone(request, upstream.send(request.method, path, sender, **sending))
    if content is not None or (declared.isdigit() and int(declared) <= _SHORT):
        content = await request.body() if content is None else content
        check_no_token(content)
        return await unless_gone(request, upstream.send(request.method, path, sender, content=content, **sending))
    if declared.isdigit():
        headers["content-length"] = declared
    return await _uploaded(request, upstream, sender, path, sending)


async def _uploaded(
    request: Request, upstream: Upstream, sender: Sender, path: str, sending: dict[str, Any]
) -> UpstreamAnswer:
    """Send a body on while it arrives."""
    failed: list[Exception] = []
    sent = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            async for block in without_token(request.stream()):
                yield block
            sent.set()
        except (Problem, ClientDisconnect) as error:
            failed.append(error)
            raise

    try:
        work = upstream.send(request.method, path, sender, content=body(), **sending)
        answer = await unless_gone(request, work, sent)
    except UpstreamFailed:
        if failed:
            # The other end only saw that the body broke off.
            raise failed[0] from None
        raise
    if failed:
        answer.close()
        raise failed[0]
    return answer


async def _blocks(answer: UpstreamAnswer) -> AsyncGenerator[bytes]:
    async for block in answer.blocks():
        yield block
