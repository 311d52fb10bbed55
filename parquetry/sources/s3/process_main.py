"""The program of the process that reads objects: many at a time, until nobody asks any more."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from fsspec.asyn import get_loop, sync

from parquetry import freed_memory
from parquetry.errors import ParquetryError
from parquetry.sources.s3.reading import ObjectReader, Read


def main(descriptors: Sequence[int]) -> None:
    """Answer on connections with these file descriptors."""
    freed_memory.keep_little()
    lines = [Connection(each) for each in descriptors]
    gc.freeze()
    lines[0].send(True)
    # The loop in which s3fs reads.
    sync(get_loop(), _Answers(lines).until_the_end)


class _Answers:
    """Answers to reads.

    Args:
        lines: connections, on each of which one read at a time is asked for.
    """

    def __init__(self, lines: Sequence[Connection]) -> None:
        self._lines = lines
        self._readers: dict[int, ObjectReader] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def until_the_end(self) -> None:
        """Answer until the other end is closed."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        for line in self._lines:
            loop.add_reader(line.fileno(), self._begin, line, ended)
        await ended

    def _begin(self, line: Connection, ended: asyncio.Future[None]) -> None:
        try:
            asked = line.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(line.fileno())
            if not ended.done():
                ended.set_result(None)
            return
        task = asyncio.get_running_loop().create_task(self._answer(line, *asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, line: Connection, number: int, told: tuple[str, dict[str, Any]] | None, key: str, size: int
    ) -> None:
        found: Read | Exception | None
        try:
            if told is not None:
                self._readers.setdefault(number, ObjectReader(*told))
            found = await self._readers[number].request(key, size)
        except (ParquetryError, OSError) as error:
            found = error
        except Exception:  # noqa: BLE001 - the other process fails in the same way, and tells it as it always does
            found = None
        line.send(found)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]])
