"""Texts of a streamed answer reach the page a moment after they arrive, however long the model pauses then."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from parquetry.serving.http.dashboard.asking import paced


class Scripted:
    """Pieces that arrive at once, and then none until the test lets more arrive."""

    def __init__(self, *pieces: str) -> None:
        self._pieces, self.more, self.is_closed = pieces, asyncio.Event(), False

    async def arriving(self, then: str = "", error: Exception | None = None) -> AsyncGenerator[str]:
        try:
            for piece in self._pieces:
                yield piece
            await self.more.wait()
            if error is not None:
                raise error
            yield then
        finally:
            self.is_closed = True


async def shown_until(texts: AsyncGenerator[str], whole: str) -> list[str]:
    """Return the texts until they are `whole`."""
    found: list[str] = []
    while "".join(found) != whole:
        found.append(await asyncio.wait_for(anext(texts), 30))
    return found


def test_last_piece_before_a_pause_is_shown_before_the_pause_ends():
    async def converse() -> tuple[list[str], list[str]]:
        script = Scripted("Every", "", "body", " has")
        texts = paced(script.arriving(" thirty days"), lambda: 0)
        before = await shown_until(texts, "Everybody has")
        script.more.set()
        return before, [text async for text in texts]

    before, after = asyncio.run(converse())
    # Not each piece alone: the page is drawn a few times a second.
    assert len(before) <= 2
    assert after == [" thirty days"]


def test_error_of_the_model_comes_after_what_it_said():
    async def converse() -> None:
        script = Scripted("a", "b")
        script.more.set()
        texts = paced(script.arriving(error=ValueError("broken off")), lambda: 0)
        await shown_until(texts, "ab")
        await anext(texts)

    with pytest.raises(ValueError, match="broken off"):
        asyncio.run(converse())


def test_who_stops_listening_closes_what_arrives():
    async def converse() -> bool:
        script = Scripted("a", "b")
        texts = paced(script.arriving(), lambda: 0)
        await anext(texts)
        await texts.aclose()
        return script.is_closed

    assert asyncio.run(converse())
