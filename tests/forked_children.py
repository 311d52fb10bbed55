"""Children forked for one request each, so that they can die at a given moment. One JSON request per line of stdin."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def die() -> None:
    """Kill this process as a power cut would: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def answer_requests(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each line of stdin with one on stdout: the work's result, and `killed` if its child died of SIGKILL.

    Args:
        work: called in a forked child with a request; a child that dies has no result.
    """
    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                os.write(writing, json.dumps(work(json.loads(line))).encode())
            finally:
                os._exit(0)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading) as stream:
            told = json.loads(stream.read() or "{}")
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps({"killed": killed, **told}), flush=True)
