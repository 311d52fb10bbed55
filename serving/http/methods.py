"""Methods of requests: HEAD is answered wherever GET is, and an unknown one is told which there are."""

from __future__ import annotations

from fastapi import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.serving.http.problems import Problem

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class HeadRequests:
    """Middleware that answers HEAD as GET, without the body.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, sending)


def no_such_route(request: Request) -> Problem:
    """Return the answer for a path that the service does not have."""
    return Problem(404, "not-found", f"there is nothing at {request.url.path[:200]!r}; /openapi.json lists all paths")


def no_such_method(request: Request) -> Problem:
    """Return the answer for a method that a path does not have."""
    allowed = [
        method for method in _METHODS if any(_answers(each, request.scope, method) for each in request.app.routes)
    ]
    if "GET" in allowed:
        allowed.insert(1, "HEAD")
    what = f"{request.method[:20]} is not possible here; {' and '.join(allowed)} {'is' if len(allowed) == 1 else 'are'}"
    return Problem(405, "method-not-allowed", what, headers={"Allow": ", ".join(allowed)})


def _answers(route: BaseRoute, scope: Scope, method: str) -> bool:
    # The web framework names the methods of the first route that has the path, and not those of the others.
    return route.matches({**scope, "method": method})[0] is Match.FULL
