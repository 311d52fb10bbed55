"""Searches take turns, in order; who waits for another service, or asks for a lot at once, holds up nobody else."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute

from parquetry.serving.http.app import create_app
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.turns import LONG_SEARCHES, SEARCHES, kind_of, takes_turns
from parquetry.settings.sections import parse_settings

SECONDS = 60


class Floor:
    """Searches that go on until they are let go.

    Args:
        embedder: name of the embedder in the settings.
    """

    def __init__(self, embedder="wordllama"):
        self.begun = []
        self._let_go = {}
        self._changed = threading.Condition()
        router = APIRouter(route_class=JsonRoute)

        async def parts_of_service():
            return SimpleNamespace(settings=SimpleNamespace(embedders=(embedder,)))

        @router.get("/search")
        @takes_turns(
            waits=lambda values: values["name"].startswith("waits"),
            long=lambda values: values["name"].startswith("long"),
        )
        def search(name: str, parts: Annotated[Any, Depends(parts_of_service)]) -> str:
            return self._search(name)

        self.app = FastAPI()
        self.app.include_router(router)

    def _search(self, name):
        with self._changed:
            self.begun.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: name in self._let_go, SECONDS)
        return name

    def let_go(self, *names):
        with self._changed:
            self._let_go.update(dict.fromkeys(names))
            self._changed.notify_all()

    async def wait_for(self, count):
        """Return the names of all searches that have begun, once they are so many."""
        return await asyncio.to_thread(self._wait_for, count)

    def _wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, SECONDS)
            return list(self.begun)


async def sent(client, names):
    """Send requests one after the other, without waiting for their answers."""
    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(client.get("/search", params={"name": name})))
        # Each reaches its turn, or the wait for it, before the next one is sent.
        for _ in range(50):
            await asyncio.sleep(0)
    return tasks


def run(floor, course):
    async def with_client():
        transport = httpx.ASGITransport(floor.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", timeout=SECONDS) as client:
            return await course(client)

    return asyncio.run(with_client())


def test_searches_begin_in_the_order_in_which_they_came():
    floor, names = Floor(), [f"search-{n}" for n in range(3 * SEARCHES)]

    async def course(client):
        tasks = await sent(client, names)
        for number, name in enumerate(names):
            going = names[: SEARCHES + number]
            # The first ones begin together.
            assert set(await floor.wait_for(len(going))) == set(going)
            floor.let_go(name)
        return [(await task).json() for task in tasks]

    assert run(floor, course) == names


@pytest.mark.parametrize("kind", ["waits", "long"])
def test_long_and_waiting_searches_leave_the_turns_to_others(kind):
    floor, slow = Floor(), [f"{kind}-{n}" for n in range(3 * SEARCHES)]

    async def course(client):
        tasks = await sent(client, slow)
        going = LONG_SEARCHES if kind == "long" else len(slow)
        assert len(await floor.wait_for(going)) == going
        quick = await sent(client, ["quick"])
        assert (await floor.wait_for(going + 1))[-1] == "quick"
        floor.let_go("quick")
        assert (await quick[0]).json() == "quick"
        floor.let_go(*slow)
        return [(await task).status_code for task in tasks]

    assert run(floor, course) == [200] * len(slow)


def test_searches_of_a_remote_embedder_take_no_turns():
    floor, names = Floor("openai:model"), [f"search-{n}" for n in range(3 * SEARCHES)]

    async def course(client):
        tasks = await sent(client, names)
        assert sorted(await floor.wait_for(len(names))) == sorted(names)
        floor.let_go(*names)
        return [(await task).json() for task in tasks]

    assert run(floor, course) == names


def test_all_routes_of_searches_take_turns(tmp_path):
    app = create_app(parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test"))
    routes = (
        each for part in app.routes for each in getattr(part, "original_router", SimpleNamespace(routes=[part])).routes
    )
    assert {route.path for route in routes if isinstance(route, APIRoute) and kind_of(route.endpoint)} == {
        "/api/knowledge/search",
        "/api/v1/knowledge/{namespace}/retrieve",
        "/retrieval",
        "/search",
        "/search/compare",
        "/v1/vector_stores/{vector_store_id}/search",
    }
