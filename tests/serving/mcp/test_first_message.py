"""The SDK of the protocol is imported by the first message: processes that answer requests start faster without it."""

import asyncio
import subprocess
import sys

import pytest
from fastapi import FastAPI

from parquetry.serving.http import mcp_routes
from parquetry.serving.http.mcp_routes import mcp_endpoint

FIRST = 8
"""messages that arrive at the same time"""


@pytest.mark.slow
def test_service_without_messages_does_not_import_it():
    code = "import sys, parquetry.serving.http.app as app; print([n for n in sys.modules if n.startswith('mcp')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def first_messages():
    app = FastAPI()
    async with mcp_endpoint(app):
        given_up = asyncio.create_task(app.state.mcp.manager())
        await asyncio.sleep(0)
        given_up.cancel()
        return await asyncio.gather(*(app.state.mcp.manager() for _ in range(FIRST)), return_exceptions=True)


def test_first_messages_share_one_manager_although_one_is_given_up():
    managers = asyncio.run(first_messages())
    assert len(managers) == FIRST
    assert len(set(map(id, managers))) == 1
    assert hasattr(managers[0], "handle_request")


def test_what_fails_then_fails_every_message(monkeypatch):
    def broken():
        raise RuntimeError("no SDK")

    monkeypatch.setattr(mcp_routes, "_new_manager", broken)
    assert [str(each) for each in asyncio.run(first_messages())] == ["no SDK"] * FIRST


def test_service_without_messages_ends():
    async def none():
        async with mcp_endpoint(FastAPI()):
            pass

    asyncio.run(asyncio.wait_for(none(), 10))
