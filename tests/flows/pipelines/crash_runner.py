"""Refresh a workshop in a forked child that is killed at a given moment. One JSON request per line of stdin.

A request names the workshop's root and either `event` (die at the n-th file operation in the corpus), `delay` (die
after that many seconds), or neither (run to the end). The response contains the outcome of the child, and the number of
file operations and seconds it took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.workshop import Workshop

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.scandir", "os.listdir"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def child(request: dict[str, Any], answer: int) -> None:
    workshop = Workshop(Path(request["root"]))
    workshop.sections |= request["sections"]
    corpus = str(workshop.root / "corpus")
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in EVENTS and arguments and str(arguments[0]).startswith(corpus):
            count += 1
            if count == request.get("event"):
                die()

    sys.addaudithook(hook)
    if request.get("delay") is not None:
        threading.Timer(request["delay"], die).start()
    started = time.monotonic()
    workshop.refresh(allow_removals=True)
    os.write(answer, json.dumps({"events": count, "seconds": time.monotonic() - started}).encode())


def main() -> None:
    for line in sys.stdin:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                child(json.loads(line), writing)
            finally:
                os._exit(0)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading) as stream:
            told = json.loads(stream.read() or "{}")
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(json.dumps({"killed": killed, **told}), flush=True)


if __name__ == "__main__":
    main()
