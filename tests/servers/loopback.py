"""Base of the tests' small HTTP servers: each is on a free port of loopback, and always stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Handler = type[BaseHTTPRequestHandler]
Listen = Callable[[tuple[str, int], Handler], ThreadingHTTPServer]


class Quiet:
    """A handler that writes no log, and nothing about a client that hangs up."""

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()  # type: ignore[misc]


class LoopbackServer:
    """Answer requests while the `with` block lasts.

    Args:
        handler: handler of a request.
        listen: function that makes a server from an address and a handler.
    """

    def __init__(self, handler: Handler, listen: Listen = ThreadingHTTPServer) -> None:
        self._server = listen(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
