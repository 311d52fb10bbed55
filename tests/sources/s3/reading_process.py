"""The process that reads small objects, as tests wait for it and look at it."""

from __future__ import annotations

import time

import psutil

from parquetry.sources.s3.process import ObjectProcess, object_process
from parquetry.sources.s3.reading import ObjectReader

_PATIENCE = 60.0
"""maximum seconds until the process answers"""


def ready(user: object) -> ObjectProcess:
    """Start the process for a user, or take the one that is there, and wait until it answers."""
    process = object_process(user)
    assert process is not None
    until = time.monotonic() + _PATIENCE
    while (line := process._take()) is None:
        assert time.monotonic() < until, "it does not answer"
        time.sleep(0.02)
    process._free.append(line)
    return process


def processes(of: int | None = None) -> list[psutil.Process]:
    """Return the processes that read objects for a program, by default for this one."""
    children = psutil.Process(of).children(recursive=True)
    return [each for each in children if "parquetry.sources.s3.process_main" in _command(each)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class CountingReader(ObjectReader):
    """A reader that counts the objects that it reads itself."""

    read_here = 0

    async def request(self, key, size):
        self.read_here += 1
        return await super().request(key, size)
