"""The server on standard input and output, for a client that started this process."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server


async def serve_streams(server: Server[Any]) -> None:
    """Serve the one client of this process until it closes its end.

    Whatever else writes to standard output meanwhile goes to standard error.
    """
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
