"""Requests that go on to the model service: whose key they carry, which headers leave, which paths may be asked for.

A token of this service names the caller and never leaves: in a header, a query or a body it refuses the request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotAuthenticated
from parquetry.serving.access.token_text import TOKEN_PREFIX
from parquetry.serving.chat.upstream import Sender, Upstream
from parquetry.serving.http.answers import GONE
from parquetry.serving.http.json_bodies import json_of
from parquetry.serving.http.problems import Problem

T = TypeVar("T")
_LEAVE = frozenset({"http-referer", "idempotency-key", "openai-beta", "user-agent", "x-client-request-id", "x-title"})
"""headers of a caller that go on"""
_LEAVE_WITH_KEY = frozenset({"openai-organization", "openai-project"})
"""headers that say which account pays; only beside the caller's own key"""
_LEAVE_BEGIN = ("x-stainless-", "anthropic-")
_COME = frozenset(
    {
        b"accept-ranges", b"content-disposition", b"content-encoding", b"content-language", b"content-range",
        b"content-type", b"retry-after", b"retry-after-ms", b"x-request-id", b"x-should-retry",
    }
)  # fmt: skip
"""headers of the model service that the client gets; not among them: cookies, redirects, rules for browsers"""
_COME_BEGIN = (b"openai-", b"x-ratelimit-", b"anthropic-")
_PLAIN = re.compile(rb"[\t\x20-\x7e\x80-\xff]{0,8192}")
_TOKEN = re.compile(rb"pqt_[0-9A-Za-z]{16}")
"""the beginning of a token, long enough to be none by chance"""
_TOKEN_BEGIN = 20
"""bytes of it"""
_SEGMENT = re.compile(r"[\w\-.~!$&'()*+,;=:@%]+", re.ASCII)


async def _model_service(request: Request) -> Upstream:
    found: Upstream = request.app.state.upstream
    return found


ModelService = Annotated[Upstream, Depends(_model_service)]


def sender_of(request: Request, principal: Principal, upstream: Upstream) -> Sender:
    """Return the key and the headers with which a request goes on.

    A bearer that is no token of this service is the key. The key of the service itself is for callers with a token, and
    for the local operator; never for those who bring a key of another service.

    Raises:
        NotAuthenticated: the request has no key that may be used.
        Problem: a token stands where it would leave.
    """
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    bearer = credentials.strip() if scheme.lower() == "bearer" else ""
    own = bearer.startswith(TOKEN_PREFIX) or ("authorization" not in request.headers)
    if own:
        if principal.token_id is None and not principal.operator:
            raise _no_key()
        return Sender(upstream.own_key, True, tuple(_leaving(request, _LEAVE)))
    if not bearer or not bearer.isascii() or not bearer.isprintable():
        raise _no_key()
    check_no_token(bearer.encode())
    return Sender(bearer, False, tuple(_leaving(request, _LEAVE | _LEAVE_WITH_KEY)))


def _no_key() -> NotAuthenticated:
    return NotAuthenticated(
        "token-missing",
        f"send a key of the model service, or a token of this service, which begins with {TOKEN_PREFIX}, as "
        "Authorization: Bearer",
    )


def _leaving(request: Request, names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name, value in request.headers.items():
        if (name in names or name.startswith(_LEAVE_BEGIN)) and TOKEN_PREFIX not in value and value.isascii():
            yield name, value


def check_no_token(content: bytes) -> None:
    """Refuse content that holds a token of this service.

    Raises:
        Problem: it does.
    """
    if b"pqt_" in content and _TOKEN.search(content):
        raise Problem(
            400,
            "token-would-leave",
            "the request holds a token of this service, which would go on to the model service; revoke the token, and "
            "send it as Authorization: Bearer or X-Parquetry-Token only",
        )


async def without_token(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the blocks of a body.

    Raises:
        Problem: they hold a token of this service; its last part was not yielded.
    """
    held = b""
    async for block in blocks:
        held += block
        check_no_token(held)
        most = max(0, len(held) - _TOKEN_BEGIN)
        if most:
            yield held[:most]
            held = held[most:]
    if held:
        yield held


async def json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request that will go on.

    Raises:
        Problem: there is none, it holds a token of this service, or more than `parsed` allows.
    """
    content = await request.body()
    check_no_token(content)
    value = await json_of(content, halves=True)
    if not isinstance(value, dict):
        raise Problem(400, "invalid-request", "the body of the request is no JSON object")
    return value


def path_of(request: Request) -> tuple[str, str]:
    """Return path and query of a request, as they may go on below the base URL.

    Raises:
        Problem: the path leads elsewhere, or the query holds a token of this service.
    """
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    path = raw.partition(b"?")[0].decode("latin-1").removeprefix("/v1/")
    query = request.scope["query_string"].decode("latin-1")
    check_no_token(raw)
    check_no_token(query.encode("latin-1"))
    if not query.isascii() or not all(map(_stays_inside, path.split("/"))):
        raise Problem(404, "no-such-path", "there is no such path", told={"code": "unknown_url"})
    return path, query


def _stays_inside(segment: str) -> bool:
    """Return True for a part of a path that no server takes for a way up, however often it decodes it."""
    if not _SEGMENT.fullmatch(segment):
        return False
    plain = segment
    for _ in range(4):
        if (decoded := unquote(plain, "latin-1")) == plain:
            break
        plain = decoded
    if "\\" in plain or not plain.isprintable():
        return False
    return all(part.partition(";")[0].strip() not in ("", ".", "..") for part in plain.split("/"))


def coming(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of the model service that the client gets."""
    found = []
    for name, value in headers:
        lower = name.lower()
        if (lower in _COME or lower.startswith(_COME_BEGIN)) and _PLAIN.fullmatch(value):
            found.append((lower, value))
    return found


class RelayedResponse(StreamingResponse):
    """A streamed answer; its source is closed at once when the client is gone.

    Args:
        blocks: generator of the body.
        ended: called once at the end, also for a client that left before the first block: a generator that has not
            begun cannot do it.
        status: HTTP status.
        headers: raw headers.
    """

    def __init__(
        self,
        blocks: AsyncGenerator[bytes],
        ended: Callable[[], Awaitable[None]],
        status: int = 200,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(blocks, status)
        self._blocks, self._ended = blocks, ended
        self.raw_headers = list(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                await self._blocks.aclose()
            finally:
                await self._ended()


class ClientGone(Exception):
    """The client does not wait for an answer any more."""


async def unless_gone(request: Request, work: Coroutine[Any, Any, T], sent: asyncio.Event | None = None) -> T:
    """Return the result of work, which is cancelled if the client disconnects.

    Args:
        request: the request; nothing else may receive its events meanwhile.
        work: the work.
        sent: set when the work has received the body; None if the body was received before.

    Raises:
        ClientGone: the client disconnected first.
    """

    async def gone() -> None:
        if sent is not None:
            await sent.wait()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        for task in (working, watching):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def gone_answer() -> Response:
    """Return the answer to a client that is gone."""
    return Response(status_code=GONE)
