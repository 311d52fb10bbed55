"""The server of a service elsewhere, passed on to the client of this process: its tools, with the token's rights."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from parquetry.masking import masked
from parquetry.serving.mcp.standard_streams import serve_streams

SECONDS = 120.0
"""seconds that the service may take to answer; longer than it waits for a write"""
T = TypeVar("T")


async def serve_bridge(address: str, headers: Mapping[str, str]) -> None:
    """Serve the client of this process from a service until the client closes its end.

    Args:
        address: address of the service's endpoint.
        headers: headers of each request: the token, and the namespace.

    Raises:
        MCPError: the service does not speak the protocol.
    """
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=httpx2.Timeout(SECONDS, connect=10)) as http,
        Client(streamable_http_client(address, http_client=http), cache=None) as remote,
    ):
        await serve_streams(_passing_on(_Remote(remote, address)))


def _passing_on(remote: _Remote) -> Server[Any]:
    info = remote.client.server_info
    return Server(
        "parquetry",
        version="" if info is None else info.version,
        title="Parquetry",
        instructions=remote.client.instructions,
        on_list_tools=remote.tools,
        on_call_tool=remote.call,
        on_list_resources=remote.resources,
        on_list_resource_templates=remote.templates,
        on_read_resource=remote.resource,
        on_list_prompts=remote.prompts,
        on_get_prompt=remote.prompt,
    )


class _Remote:
    """Handlers that ask the service.

    Args:
        client: open client of the service.
        address: address of the service, for messages.
    """

    def __init__(self, client: Client, address: str) -> None:
        self.client, self._address = client, address

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except (httpx2.HTTPError, OSError) as error:
            told = masked(str(error) or type(error).__name__)
            raise MCPError(INTERNAL_ERROR, f"the service at {self._address} cannot be asked: {told}") from error

    async def tools(self, _: Any, asked: PaginatedRequestParams | None) -> ListToolsResult:
        return await self._asked(self.client.list_tools(cursor=_cursor(asked)))

    async def call(self, _: Any, asked: CallToolRequestParams) -> CallToolResult:
        return await self._asked(self.client.call_tool(asked.name, asked.arguments))

    async def resources(self, _: Any, asked: PaginatedRequestParams | None) -> ListResourcesResult:
        return await self._asked(self.client.list_resources(cursor=_cursor(asked)))

    async def templates(self, _: Any, asked: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return await self._asked(self.client.list_resource_templates(cursor=_cursor(asked)))

    async def resource(self, _: Any, asked: ReadResourceRequestParams) -> ReadResourceResult:
        return await self._asked(self.client.read_resource(str(asked.uri)))

    async def prompts(self, _: Any, asked: PaginatedRequestParams | None) -> ListPromptsResult:
        return await self._asked(self.client.list_prompts(cursor=_cursor(asked)))

    async def prompt(self, _: Any, asked: GetPromptRequestParams) -> GetPromptResult:
        return await self._asked(self.client.get_prompt(asked.name, asked.arguments))


def _cursor(asked: PaginatedRequestParams | None) -> str | None:
    return None if asked is None else asked.cursor
