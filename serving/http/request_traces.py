"""Spans of requests, for OpenTelemetry: below the span of the caller, if it sent one."""

from __future__ import annotations

from http import HTTPMethod
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.serving.http.health_routes import PUBLIC
from parquetry.telemetry import tracing

_HEADERS = frozenset({b"traceparent", b"tracestate"})
_METHODS = frozenset(HTTPMethod)
_SERVER_ERROR = 500


class RequestTraces:
    """Middleware that records each request as a span, except those of health checks and metrics.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http" or scope["path"] in PUBLIC:
            await self._app(scope, receive, send)
            return
        sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
        # Methods are any word that a stranger sends.
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        labels: dict[str, tracing.Value] = {"http.request.method": method, "url.scheme": scope["scheme"]}
        started, status = perf_counter(), _SERVER_ERROR

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with tracing.span(method, labels, tracing.of_headers(sent), kind="server") as span:
            try:
                await self._app(scope, receive, sending)
            finally:
                # The pattern of the route, and never a path: paths may hold names.
                labels |= {"http.response.status_code": status}
                if route := getattr(scope.get("route"), "path", None):
                    labels["http.route"] = route
                tracing.duration("http.server.request.duration", perf_counter() - started, labels)
                if span is not None:
                    span.update_name(f"{method} {route}" if route else method)
                    span.set_attributes(labels)
                    if status >= _SERVER_ERROR:
                        tracing.set_error(span, str(status))
