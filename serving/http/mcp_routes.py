"""The route of the Model Context Protocol: streamable HTTP without sessions, behind the same gate as every route.

The SDK is imported by the first message: it takes over a quarter of the imports of a process that answers requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.types import Message, Receive, Scope, Send

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.http.admission import record_refusal
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.body_limits import MCP, MCP_BYTES
from parquetry.serving.http.callers import NAMESPACE_HEADER, SearchCaller
from parquetry.serving.http.json_bodies import bounded
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.service.remembering import ServiceMemory
from parquetry.serving.service.resources import Resources

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

router = APIRouter(tags=["mcp"])


class _Endpoint:
    """The SDK's manager of messages, made and run by the first one."""

    def __init__(self) -> None:
        self._wanted = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] = asyncio.get_running_loop().create_future()

    async def manager(self) -> StreamableHTTPSessionManager:
        """Return the running manager."""
        self._wanted.set()
        # One request that is given up must not take it from the others.
        return await asyncio.shield(self._manager)

    async def run(self) -> None:
        """Run the manager from the first request on, until this task is cancelled."""
        await self._wanted.wait()
        try:
            manager = await asyncio.to_thread(_new_manager)
        except Exception as error:  # noqa: BLE001 - raised by every request for it
            self._manager.set_exception(error)
            return
        async with manager.run():
            self._manager.set_result(manager)
            await asyncio.Event().wait()


def _new_manager() -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from parquetry.serving.mcp.server import make_server

    return StreamableHTTPSessionManager(
        make_server(lambda context: visit_of(context.request)),
        json_response=True,
        stateless=True,
        # The gate has checked host and origin, by the settings of the service.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        # The service has bounded the body before, and refuses it in its own form.
        max_request_body_size=MCP_BYTES,
    )


@asynccontextmanager
async def mcp_endpoint(app: FastAPI) -> AsyncIterator[None]:
    """Answer the route of an application for the block."""
    app.state.mcp = _Endpoint()
    running = asyncio.create_task(app.state.mcp.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


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
    body = await bounded(await request.body())
    return _Handled(await request.app.state.mcp.manager(), body)


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
