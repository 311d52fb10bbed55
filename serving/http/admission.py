"""Admission of requests, before anything of their bodies is read."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from parquetry.errors import ParquetryError
from parquetry.plural import size_of
from parquetry.serving.access.audit import AuditEvent
from parquetry.serving.access.gate import Arrival
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused, NotAuthenticated
from parquetry.serving.http.dialects import dialect_of, error_response
from parquetry.serving.http.problems import Problem, known_problem
from parquetry.serving.service.resources import Resources

MOST_HEADERS = 16 * 1024
"""bytes of all headers of a request"""
_TOO_LARGE = Problem(431, "headers-too-large", f"the headers of the request are larger than {size_of(MOST_HEADERS)}")


class Admission:
    """Middleware that finds out who makes a request, and refuses those who may not.

    Args:
        app: the application.
        owner: the application whose state has the open parts of the service.
        public: paths that need no token.
    """

    def __init__(self, app: ASGIApp, owner: FastAPI, public: Collection[str]) -> None:
        self._app, self._owner, self._public = app, owner, public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            await error_response(scope["path"], _TOO_LARGE)(scope, receive, send)
            return
        resources: Resources = self._owner.state.resources
        client = scope.get("client")
        dialect = dialect_of(scope["path"])
        arrival = Arrival.of(scope["method"], client[0] if client else None, scope["headers"])
        try:
            if scope["path"] in self._public:
                resources.gate.screen(arrival)
            else:
                scope.setdefault("state", {})["principal"] = resources.gate.admit(
                    arrival, foreign_bearers=dialect.foreign_bearers, by_cookie=dialect.sign_in is not None
                )
        except ParquetryError as error:
            if isinstance(error, AccessRefused):
                record_refusal(resources, arrival.peer, error, f"{scope['method']} {scope['path'][:200]}")
            if dialect.sign_in is not None and isinstance(error, NotAuthenticated) and scope["method"] == "GET":
                await dialect.sign_in({**scope, "app": self._owner}, known_problem(error))(scope, receive, send)
                return
            await error_response(scope["path"], error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def record_refusal(
    resources: Resources,
    address: str | None,
    refusal: AccessRefused,
    target: str,
    principal: Principal | None = None,
) -> None:
    """Record that a request was refused; its maker is known if only a right was missing."""
    event = AuditEvent("access.refused", address=address, status=refusal.status, reason=refusal.reason, target=target)
    resources.audit.write(event if principal is None else event.by(principal))
