"""Errors that nothing else answered: each ends one request with a reason, and never the connection."""

from __future__ import annotations

from asyncio import CancelledError

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.errors import TransientError
from parquetry.serving.http.dialects import error_response


class Containment:
    """Middleware that answers any error in the form of the request's dialect.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except CancelledError:
            # The service stops, and its requests have had their time.
            if not started:
                stopping = TransientError("unavailable", "the service stops; send the request again when it is back")
                await error_response(scope["path"], stopping)(scope, receive, send)
        except Exception as error:
            # The edge of a request: whatever it runs into, others are answered.
            if started:
                raise
            await error_response(scope["path"], error)(scope, receive, send)
