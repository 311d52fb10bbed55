"""Runs `parquetry` commands one after the other in one process, which saves the time to start Python for each.

Reads one JSON list of arguments per line of stdin; writes exit code, stdout and stderr as JSON per line of stdout.

With the path of a socket as argument, it serves many folders: each connection gets a process of its own, forked from
one that has everything imported. Its first line is the folder, and its other lines are lists of arguments. The end of
stdin ends the server.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO

from parquetry.masked_output import guard_output
from parquetry.serving.cli.main import run
from tests.forked_children import import_as_children_did, imported_since


def answer(arguments: list[str]) -> dict[str, int | str]:
    """Run one command as `main` runs it, except that this process goes on."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        guard_output()
        code = run(arguments)
    return {"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()}


def serve(place: str) -> None:
    """Serve connections to a socket until the end of stdin, and those that are open then to their end."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(f"{place}.new")
        listener.listen()
        # Only now can others connect.
        Path(f"{place}.new").rename(place)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    selector.unregister(sys.stdin)
                    selector.unregister(listener)
                    break
                if key.fileobj is listener:
                    told, pid = _forked(listener)
                    selector.register(told, selectors.EVENT_READ, pid)
                else:
                    selector.unregister(key.fileobj)
                    with os.fdopen(key.fd) as stream:
                        imported = json.loads(stream.read() or "[]")
                    os.waitpid(key.data, 0)
                    import_as_children_did(imported)


def _forked(listener: socket.socket) -> tuple[int, int]:
    """Accept a connection; return the pipe on which its process names in the end what it imported, and its number."""
    connection, _ = listener.accept()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            listener.close()
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            earlier = frozenset(sys.modules)
            with connection, connection.makefile("r") as requests, connection.makefile("w") as replies:
                _answer_all(requests, replies)
            with os.fdopen(writing, "w") as stream:
                json.dump(imported_since(earlier), stream)
        finally:
            os._exit(0)
    os.close(writing)
    connection.close()
    return reading, pid


def _answer_all(requests: IO[str], replies: IO[str]) -> None:
    folder = json.loads(requests.readline())
    os.chdir(folder)
    # As of a program that is started there.
    sys.path[0] = folder
    for line in requests:
        replies.write(json.dumps(answer(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(sys.argv[1])
    else:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
