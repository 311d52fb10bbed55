"""The official MCP client, over HTTP and over standard streams, for tests that are no coroutines."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

MODES = ("auto", "legacy")
"""both generations of the protocol: with `server/discover`, and with `initialize`"""
GENERATIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@asynccontextmanager
async def over_http(url: str, token: str | None = None, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """Yield a client of the service at a URL."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


@asynccontextmanager
async def over_streams(folder: Path, *arguments: str, mode: str = "auto", **environment: str) -> AsyncIterator[Client]:
    """Yield a client of `parquetry mcp`, started in a folder."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "parquetry.serving.cli.main", "mcp", *arguments],
        env={**os.environ, **environment},
        cwd=str(folder),
    )
    async with Client(command, mode=mode, cache=None) as client:
        yield client


def ask(connection: Any, question: Callable[[Client], Awaitable[Any]]) -> Any:
    """Open a connection, ask, and return the answer.

    Raises:
        MCPError: the answer is an error of the protocol.
    """

    async def asked() -> Any:
        async with connection as client:
            try:
                return await question(client)
            except MCPError as error:
                # Raised in here, it would arrive in groups of groups.
                return error

    answer = anyio.run(asked)
    if isinstance(answer, MCPError):
        raise answer
    return answer


def call(connection: Any, tool: str, **arguments: Any) -> Any:
    """Return the result of one call of a tool."""
    return ask(connection, lambda client: client.call_tool(tool, arguments))


def text_of(result: Any) -> str:
    """Return the text of a result, which is no error."""
    assert not result.is_error, result
    (content,) = result.content
    return content.text


def failed(result: Any) -> str:
    """Return the one line of a result that is an error."""
    assert result.is_error, result
    (content,) = result.content
    assert result.structured_content is None
    assert "\n" not in content.text
    return content.text
