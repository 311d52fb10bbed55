"""The route of the Model Context Protocol: streamable HTTP without sessions, behind the same gate as every route."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Message, Receive, Scope, Send

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.http.admission import record_refusal
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.body_limits import MCP, MCP_BYTES
from parquetry.serving.http.callers import NAMESPACE_HEADER, SearchCaller
from parquetry.serving.http.json_bodies import bounded
from parquetry.serving.mcp.server import make_server
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.service.remembering import ServiceMemory
from parquetry.serving.service.resources import Resources

router = APIRouter(tags=["mcp"])


@asynccontextmanager
async def mcp_endpoint(app: FastAPI) -> AsyncIterator[None]:
    """Answer the route of an application for the block."""
    manager = StreamableHTTPSessionManager(
        make_server(lambda context: visit_of(context.request)),
        json_response=True,
        stateless=True,
        # The gate has checked host and origin, by the settings of the service.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        # The service has bounded the body before, and refuses it in its own form.
        max_request_body_size=MCP_BYTES,
    )
    async with manager.run():
        app.state.mcp = manager
        yield


class _Handled(Response):
    """An answer that the SDK sends to a body that was received."""

    def __init__(self, manager: StreamableHTTPSessionManager, body: bytes) -> None:
        super().__init__()
        self._manager, self._received = manager, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole: list[Message] = [{"type": "http.request", "body": self._received, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self._manager.handle_request(scope, again, send)


@router.post(MCP, include_in_schema=False)
async def mcp(request: Request, caller: SearchCaller) -> Response:  # noqa: ARG001 (the caller is checked)
    """Answer one message of the protocol; there are no sessions, and so nothing to get or delete."""
    return _Handled(request.app.state.mcp, await bounded(await request.body()))


def visit_of(request: Request) -> Visit:
    """Return the visit of a request."""
    resources: Resources = request.app.state.resources
    principal: Principal = request.state.principal
    settings = resources.settings
    may_remember = principal.token_id is not None and not settings.serve.read_only and settings.llm.model is not None
    return Visit(
        settings,
        resources.follower,
        principal,
        named=request.headers.get(NAMESPACE_HEADER),
        memory=ServiceMemory(resources, principal) if may_remember else None,
        record=partial(Recorded, request, principal),
        refused=partial(_refused, request, resources, principal),
    )


def _refused(request: Request, resources: Resources, principal: Principal, refusal: AccessRefused, target: Any) -> None:
    address = None if request.client is None else request.client.host
    record_refusal(resources, address, refusal, f"{request.method} {MCP} {target}", principal)
