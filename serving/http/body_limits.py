"""Bounds of a request's body: bytes, whatever its headers say, and the time in which it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.plural import size_of
from parquetry.serving.http.dialects import error_response
from parquetry.serving.http.problems import Problem


class BodyLimits:
    """Middleware that ends requests with a body too large or too slow.

    Args:
        app: the application.
        most: function of a path -> maximum bytes of its bodies.
        seconds: time for a body to arrive.
    """

    def __init__(self, app: ASGIApp, most: Callable[[str], int], seconds: float) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._most(scope["path"])
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            await error_response(scope["path"], _too_large(most))(scope, receive, send)
            return
        body = _Body(receive, most, monotonic() + self._seconds)
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

    def __init__(self, receive: Receive, most: int, deadline: float) -> None:
        self._receive, self._most, self._deadline = receive, most, deadline
        self._read = 0
        self._whole = False

    async def receive(self) -> Message:
        """Return the next event of the request.

        Raises:
            Problem: the body is too large or too slow.
        """
        if self._whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.001, self._deadline - monotonic()))
        except TimeoutError:
            raise Problem(
                408, "too-slow", "the body of the request did not arrive in time; send it again", headers=_CLOSE
            ) from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self._most:
                raise _too_large(self._most)
        return message


_CLOSE = {"Connection": "close"}


def _too_large(most: int) -> Problem:
    return Problem(
        413, "too-large", f"the body of the request is larger than {size_of(most)}; send less at once", headers=_CLOSE
    )
