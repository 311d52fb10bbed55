"""Refresh a workshop in a forked child that is killed at a given moment. One JSON request per line of stdin.

A request names the workshop's root and either `event` (die at the n-th file operation in the corpus, or change of
names in its folder `below`), `delay` (die after that many seconds), or neither (run to the end). The response contains
the outcome of the child, and the number of file operations and seconds it took.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.forked_children import answer_requests, die
from tests.workshop import Workshop

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.scandir", "os.listdir"}
CHANGES = {"os.link", "os.remove", "os.mkdir"}


def child(request: dict[str, Any]) -> dict[str, Any]:
    workshop = Workshop(Path(request["root"]))
    workshop.sections |= request["sections"]
    corpus = str(workshop.root / "corpus" / request.get("below", ""))
    events = CHANGES if "below" in request else EVENTS
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in events and arguments and str(arguments[0]).startswith(corpus):
            count += 1
            if count == request.get("event"):
                die()

    sys.addaudithook(hook)
    if request.get("delay") is not None:
        threading.Timer(request["delay"], die).start()
    started = time.monotonic()
    workshop.refresh(allow_removals=True)
    return {"events": count, "seconds": time.monotonic() - started}


if __name__ == "__main__":
    answer_requests(child)
