"""Entity tags: who asks again for what has not changed gets 304 and no body."""

from __future__ import annotations

import hashlib

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_VARY = "Authorization, X-Parquetry-Token, X-Parquetry-Namespace"


class ETags:
    """Middleware that tags answers to GET with a hash of their content.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        known = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
        held: Message | None = None

        async def sending(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and message["status"] == 200:
                held = message
                return
            if held is None:
                await send(message)
                return
            start, held = held, None
            if message.get("more_body", False):
                # A stream is sent as it comes, without a tag.
                await send(start)
                await send(message)
                return
            await _send_tagged(start, message, known, send)

        await self._app(scope, receive, sending)


async def _send_tagged(start: Message, body: Message, known: str, send: Send) -> None:
    tag = f'"{hashlib.blake2b(body.get("body", b""), digest_size=12).hexdigest()}"'
    headers = MutableHeaders(raw=start["headers"])
    headers["ETag"] = tag
    headers.setdefault("Cache-Control", "private, no-cache")
    headers["Vary"] = _VARY
    if tag in (each.strip().removeprefix("W/") for each in known.split(",")) or known.strip() == "*":
        del headers["Content-Length"]
        await send({**start, "status": 304})
        await send({**body, "body": b""})
        return
    await send(start)
    await send(body)
