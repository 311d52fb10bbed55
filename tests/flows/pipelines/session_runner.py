"""Learn from shelves of sessions in forked children, one of them killed at a given moment, or many at a time.

One JSON request per line of stdin: `shelves` (root, url, source and sections of each), and optionally `event`: the
first child dies at its n-th change of a file of the corpus. The response contains the outcome and report of every
child, and the number of such changes it made.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

import openai  # noqa: F401 - children find it imported

from parquetry.storage.without_pandas import use_without_pandas
from tests.forked_children import import_as_children_did, imported_since
from tests.sessions_shelf import Shelf

CHANGES = {"os.rename", "os.remove", "os.mkdir"}


def child(shelf: Shelf, event: int | None, answer: int) -> None:
    corpus, count = shelf.settings.corpus.root, 0
    earlier = frozenset(sys.modules)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        path = str(arguments[0]) if arguments else ""
        if not path.startswith(corpus) or path.startswith(f"{corpus}/index"):
            return
        if name in CHANGES or (name == "open" and "r" not in str(arguments[1] or "w")) or path.endswith(".unfinished"):
            count += 1
            if count == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    report = shelf.learn().as_json()
    with os.fdopen(answer, "w") as stream:
        json.dump({"changes": count, "report": report, "imported": imported_since(earlier)}, stream)


def started(told: dict[str, Any], event: int | None) -> tuple[int, int]:
    shelf = Shelf(Path(told["root"]), told["url"])
    shelf.source, shelf.sections = told["source"], told["sections"]
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            child(shelf, event, writing)
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def main() -> None:
    # As the command line does.
    use_without_pandas()
    for line in sys.stdin:
        request = json.loads(line)
        events = [request.get("event"), *(None for _ in request["shelves"][1:])]
        children = [started(told, event) for told, event in zip(request["shelves"], events, strict=True)]
        answers = []
        for pid, reading in children:
            with os.fdopen(reading) as stream:
                said = json.loads(stream.read() or "{}")
            _, status = os.waitpid(pid, 0)
            import_as_children_did(said.pop("imported", ()))
            answers.append({"killed": os.WIFSIGNALED(status), **said})
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
