"""The source of a streamed answer is ended once, even if its client leaves before the first block."""

import asyncio

import pytest

from parquetry.serving.http.openai.sending import RelayedResponse

SCOPE = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.3"}}


@pytest.mark.parametrize("blocks_before", [0, 1, 3])
def test_source_is_ended_once_whenever_the_client_leaves(blocks_before):
    ended, sent, closed = [], [], []

    async def blocks():
        try:
            for number in range(3):
                yield b"%d" % number
        finally:
            closed.append(True)

    async def end():
        assert closed == ([True] if blocks_before else [])
        ended.append(True)

    async def answer():
        gone = asyncio.Event()
        if not blocks_before:
            gone.set()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if sum(bool(each.get("body")) for each in sent) == blocks_before:
                gone.set()
            await asyncio.sleep(0)

        await RelayedResponse(blocks(), end)(SCOPE, receive, send)

    asyncio.run(answer())
    assert ended == [True]


def test_source_is_ended_when_it_fails():
    ended = []

    async def blocks():
        yield b"0"
        raise ValueError("no more")

    async def end():
        ended.append(True)

    async def send(_):
        pass

    async def receive():
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="no more"):
        asyncio.run(RelayedResponse(blocks(), end)(SCOPE, receive, send))
    assert ended == [True]
