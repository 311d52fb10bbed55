"""Bounds of a request's body: bytes, whatever its headers say, and the time in which it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.plural import size_of
from parquetry.serving.http.dialects import error_response
from parquetry.serving.http.openai.paths import FILES, FORM_BYTES, PART_BYTES, PARTS, UPLOADS
from parquetry.serving.http.problems import Problem
from parquetry.settings.serving import ServeSettings

MCP = "/mcp"
"""path of the Model Context Protocol"""
MCP_BYTES = 4 * 1024 * 1024
"""maximum bytes of a message of the protocol, as its SDK has it; no argument of a tool is larger than a question"""
_FILE_RATE = 64 * 1024.0
"""bytes per second that a file arrives at least"""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Bounds of the bodies of a path."""

    most: int
    """bytes"""
    seconds: float
    """time to arrive"""
    rate: float = inf
    """bytes per second: a body may take longer as long as it arrives at this rate after `seconds`"""


def body_limit(serve: ServeSettings, path: str) -> BodyLimit:
    """Return the bounds of the bodies of a path: files may be large and take long, as long as they arrive."""
    if path == FILES or (path.startswith(f"{UPLOADS}/") and path.endswith(PARTS)):
        most = serve.max_file_bytes if path == FILES else PART_BYTES
        return BodyLimit(most + FORM_BYTES, serve.body_seconds, _FILE_RATE)
    if path == MCP:
        return BodyLimit(min(serve.max_body_bytes, MCP_BYTES), serve.body_seconds)
    return BodyLimit(serve.max_body_bytes, serve.body_seconds)


class BodyLimits:
    """Middleware that ends requests with a body too large or too slow.

    Args:
        app: the application.
        limit: path -> bounds of its bodies.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[str], BodyLimit]) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["path"])
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit.most:
            await error_response(scope["path"], _too_large(limit.most))(scope, receive, send)
            return
        body = _Body(receive, limit)
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, body.receive, sending)
        except Problem as problem:
            if started:
                raise
            await error_response(scope["path"], problem)(scope, receive, send)


class _Body:
    """The body of one request, counted while it arrives."""

    def __init__(self, receive: Receive, limit: BodyLimit) -> None:
        self._receive, self._limit = receive, limit
        self._started = monotonic()
        self._read = 0
        self._whole = False

    async def receive(self) -> Message:
        """Return the next event of the request.

        Raises:
            Problem: the body is too large or too slow.
        """
        if self._whole:
            return await self._receive()
        deadline = self._started + self._limit.seconds + self._read / self._limit.rate
        try:
            # Not `wait_for`, which makes each wait a task.
            async with asyncio.timeout(max(0.001, deadline - monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408, "too-slow", "the body of the request did not arrive in time; send it again", headers=_CLOSE
            ) from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self._limit.most:
                raise _too_large(self._limit.most)
        return message


_CLOSE = {"Connection": "close"}


def _too_large(most: int) -> Problem:
    return Problem(
        413, "too-large", f"the body of the request is larger than {size_of(most)}; send less at once", headers=_CLOSE
    )
