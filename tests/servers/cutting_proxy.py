"""A relay on loopback between a client and a server that truncates answers on request."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class CuttingProxy:
    """Pass bytes to and from a port of this machine while the `with` block lasts.

    Args:
        port: port of the server.
    """

    def __init__(self, port: int) -> None:
        self.allowed: int | None = None
        """bytes of every answer that still pass before the connection is cut; None passes all"""
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> CuttingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for each in tuple(self._open):
            _cut(each)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._open |= {client, server}
            for source, target, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._relay, args=(source, target, answers), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                allowed = self.allowed if answers else None
                target.sendall(data if allowed is None else data[:allowed])
                if allowed is not None and len(data) > allowed:
                    break
        for each in (source, target):
            _cut(each)
            self._open.discard(each)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
