"""Real web servers on loopback: one that behaves, one whose bytes a test scripts, and a canary."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass(frozen=True, slots=True)
class Page:
    """The content at a path."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str | None = None
    modified: str | None = None

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass(frozen=True, slots=True)
class Asked:
    """A request received."""

    path: str
    headers: Mapping[str, str]
    status: int
    """status of the reply"""


class WebServer(LoopbackServer):
    """Serve its `pages`, by path and query, while the `with` block lasts; honour conditional requests.

    `robots.txt` does not exist unless a test adds one.
    """

    def __init__(self, pages: Mapping[str, Page] | None = None) -> None:
        self.pages: dict[str, Page] = dict(pages or {})
        self.asked: list[Asked] = []
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                page = owner.pages.get(self.path, Page("not here", 404))
                unchanged = page.status == 200 and (
                    (page.etag is not None and self.headers.get("If-None-Match") == page.etag)
                    or (page.modified is not None and self.headers.get("If-Modified-Since") == page.modified)
                )
                status, content = (304, b"") if unchanged else (page.status, page.content)
                owner.asked.append(Asked(self.path, dict(self.headers.items()), status))
                self.send_response(status)
                validators = {"ETag": page.etag, "Last-Modified": page.modified}
                told = {name: value for name, value in validators.items() if value is not None}
                for name, value in {"Content-Length": str(len(content)), **told, **page.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        super().__init__(Handler)

    @property
    def place(self) -> str:
        """Return host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def paths(self) -> list[str]:
        """Return the paths requested so far, except `robots.txt`, and clear the record."""
        asked = [each.path for each in self.asked if each.path != "/robots.txt"]
        self.asked.clear()
        return asked


Play = Callable[[socket.socket], None]
"""function that writes to a client that has sent a request, until everything is sent or the client is gone"""


class RawServer:
    """Let `play` answer every connection while the `with` block lasts; without it, answer nothing and count."""

    def __init__(self, play: Play | None = None) -> None:
        self._play = play
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(65536):
                    if self._play is not None:
                        self._play(connection)
                        return
            except OSError:
                pass  # Most of these tests are about clients that disconnect.

    def __enter__(self) -> RawServer:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            # Most are closed already.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
