"""Children forked for one request each, so that they can die at a given moment. One JSON request per line of stdin."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from parquetry.storage.without_pandas import use_without_pandas


def die() -> None:
    """Kill this process as a power cut would: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def imported_since(earlier: frozenset[str]) -> list[str]:
    """Return the modules that this process has imported since, in their order."""
    return [name for name in sys.modules if name not in earlier]


def import_as_children_did(modules: Iterable[str]) -> None:
    """Import modules that a child needed, for the children after it: that takes most of the time of a small run."""
    for name in modules:
        # A module that another one made up cannot be imported by its name.
        with suppress(ImportError):
            import_module(name)


def answer_requests(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each line of stdin with one on stdout: the work's result, and `killed` if its child died of SIGKILL.

    Args:
        work: called in a forked child with a request; a child that dies has no result.
    """
    # As the command line does.
    use_without_pandas()
    for line in sys.stdin:
        reading, writing = os.pipe()
        earlier = frozenset(sys.modules)
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                result = work(json.loads(line))
                with os.fdopen(writing, "w") as stream:
                    json.dump([result, imported_since(earlier)], stream)
            finally:
                os._exit(0)
        os.close(writing)
        # Before it is waited for: a pipe holds only so much.
        with os.fdopen(reading) as stream:
            result, imported = json.loads(stream.read() or "[{}, []]")
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        import_as_children_did(imported)
        print(json.dumps({"killed": killed, **result}), flush=True)
