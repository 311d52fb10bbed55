"""The process that answers requests: one of several on one socket.

`python -m parquetry.serving.service.answering`, started by the service: settings come in the environment, the
application and the socket in the first line of standard input, and the end of standard input means to stop.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import signal
import socket
import sys
import threading
from typing import Any

import uvicorn

from parquetry.errors import ParquetryError
from parquetry.masked_output import guard_output
from parquetry.process_folder import remove_process_folder
from parquetry.serving.service.connections import PatientProtocol
from parquetry.telemetry.json_logs import say

READY = "ready"
"""line on standard output once requests are answered"""
GRACE_SECONDS = 10
"""seconds for requests to finish after the order to stop"""
KEEP_ALIVE_SECONDS = 15
"""seconds for which an idle connection is kept"""
MOST_HEADER_BYTES = 64 * 1024


class _Server(uvicorn.Server):
    """Server that says when it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(f"{READY}\n")
            sys.stdout.flush()


def main() -> None:
    """Answer requests until told to stop."""
    guard_output()
    # The server sends itself the signal again that stopped it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    try:
        code = _answer(json.loads(sys.stdin.readline()))
    except ParquetryError as error:
        for line in error.lines:
            say(f"parquetry: {line}", is_problem=True)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    remove_process_folder()
    # Threads may still read a version of the corpus.
    os._exit(code)


def _answer(given: dict[str, Any]) -> int:
    config = uvicorn.Config(
        given["app"],
        factory=True,
        lifespan="on",
        # Others, if they are installed, have no limits of heads and connections.
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Who asks through a proxy is told by a token, never by a header.
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    # Modules stay, and looking through them again and again takes a tenth of the start.
    gc.disable()
    config.load()
    gc.freeze()
    gc.enable()
    server = _Server(config)
    threading.Thread(target=_stop_with_service, args=(server,), name="orders", daemon=True).start()
    server.run([_socket(given)])
    return 0 if server.started else 4


def _stop_with_service(server: uvicorn.Server) -> None:
    sys.stdin.read()
    server.should_exit = True


def _socket(given: dict[str, Any]) -> socket.socket:
    if "share" in given:
        return socket.fromshare(base64.b64decode(given["share"]))  # type: ignore[attr-defined,no-any-return,unused-ignore]
    return socket.socket(fileno=given["descriptor"])


if __name__ == "__main__":
    main()
