"""A real HTTP proxy on loopback between a client and a server, which injects faults by a seeded schedule.

Requests are passed on unchanged, including the Host header, so that signatures over it stay valid. It runs in threads
of this process: calls that hold Python's lock while they wait (`DeltaTable.history`) never get an answer from here.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

BEFORE = ("storm", "error", "reset", "hang")
"""faults of requests that never reach the server"""
AFTER = ("lie", "drop")
"""faults after the server has processed the request: the client gets an error, or no reply at all"""
OF_ANSWERS = ("truncate", "slow")
OF_CONDITIONS = ("precondition", "conflict")
"""faults of conditional writes: 412 without any other writer, 409"""
EVERY = (*BEFORE, *AFTER, *OF_ANSWERS, *OF_CONDITIONS)
_STORM_REQUESTS = 4
_READING_SHARE = 0.1
_HANG_SECONDS = 0.15
_SLOW_SECONDS = 0.1
_HOP = {"connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


class Schedule:
    """The faults of requests, derived from a seed.

    Args:
        seed: schedules with equal seeds draw the same random numbers.
        share: share of writing requests that fail; of reading ones, which are far more numerous, a tenth of that.
        most: maximum number of faults; after them all requests succeed.
        kinds: kinds of faults.
    """

    def __init__(self, seed: int, share: float = 0.15, most: int = 8, kinds: Sequence[str] = EVERY) -> None:
        self.thrown: Counter[str] = Counter()
        self._dice = random.Random(seed)
        self._share, self._left, self._kinds = share, most, kinds
        self._storm = 0
        self._lock = threading.Lock()

    def next(self, *, writing: bool, conditional: bool) -> str | None:
        """Return the fault of the next request; None if it succeeds."""
        with self._lock:
            if self._storm:
                self._storm -= 1
                return "storm"
            chance, kind = self._dice.random(), self._dice.choice(self._kinds)
            spared = chance >= self._share * (1 if writing else _READING_SHARE)
            if not self._left or spared or (kind in OF_CONDITIONS and not conditional):
                return None
            self._left -= 1
            self._storm = self._dice.randrange(_STORM_REQUESTS) if kind == "storm" else 0
            self.thrown[kind] += 1
            return kind


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


class FaultProxy:
    """Pass requests on to a server while the `with` block lasts.

    Args:
        upstream: URL of the server.
    """

    def __init__(self, upstream: str) -> None:
        self.schedule: Schedule | None = None
        self.requests: Counter[str] = Counter()
        """number of requests by method"""
        self._upstream = urlsplit(upstream).netloc
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            timeout = 60

            def handle_any(self) -> None:
                owner._serve(self)

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return self.handle_any
                raise AttributeError(name)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Ignore clients that hang up, as they may."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def failing(self, schedule: Schedule) -> Iterator[Schedule]:
        """Inject faults by a schedule inside the block."""
        self.schedule = schedule
        try:
            yield schedule
        finally:
            self.schedule = None

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        body = _body_of(request)
        self.requests[request.command] += 1
        schedule, fault = self.schedule, None
        if schedule is not None:
            writing = request.command not in ("GET", "HEAD")
            conditional = writing and ("If-None-Match" in request.headers or "If-Match" in request.headers)
            fault = schedule.next(writing=writing, conditional=conditional)
        if fault in ("storm", "error", "precondition", "conflict"):
            _send(request, _refusal(fault))
        elif fault in ("reset", "hang"):
            time.sleep(_HANG_SECONDS if fault == "hang" else 0)
            _hang_up(request)
        else:
            self._pass_on(request, body, fault)

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes, fault: str | None) -> None:
        try:
            answer = self._ask(request, body)
        except (OSError, HTTPException):
            _hang_up(request)
            return
        if fault == "lie":
            _send(request, _refusal("error"))
        elif fault == "drop":
            _hang_up(request)
        elif fault == "truncate":
            _send(request, answer, share=0.5)
            _hang_up(request)
        else:
            time.sleep(_SLOW_SECONDS if fault == "slow" else 0)
            _send(request, answer)

    def _ask(self, request: BaseHTTPRequestHandler, body: bytes) -> _Answer:
        connection = HTTPConnection(self._upstream, timeout=60)
        try:
            connection.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name.lower() not in _HOP:
                    connection.putheader(name, value)
            if "Content-Length" not in request.headers and body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return _Answer(answer.status, answer.reason, answer.getheaders(), answer.read())
        finally:
            connection.close()


def _body_of(request: BaseHTTPRequestHandler) -> bytes:
    if "chunked" not in request.headers.get("Transfer-Encoding", ""):
        return request.rfile.read(int(request.headers.get("Content-Length", 0)))
    parts = []
    while size := int(request.rfile.readline().split(b";")[0], 16):
        parts.append(request.rfile.read(size))
        request.rfile.readline()
    while request.rfile.readline().strip():
        pass
    return b"".join(parts)


def _refusal(fault: str) -> _Answer:
    status, code, headers = {
        "storm": (503, "SlowDown", [("Retry-After", "0")]),
        "error": (500, "InternalError", []),
        "precondition": (412, "PreconditionFailed", []),
        "conflict": (409, "ConditionalRequestConflict", []),
    }[fault]
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>thrown by the proxy</Message></Error>'
    return _Answer(status, code, [*headers, ("Content-Type", "application/xml")], body.encode())


def _send(request: BaseHTTPRequestHandler, answer: _Answer, share: float = 1.0) -> None:
    """Send an answer, or the first part of one that claims to be whole."""
    request.send_response_only(answer.status, answer.reason)
    told = {name.lower(): value for name, value in answer.headers}
    length = told["content-length"] if request.command == "HEAD" and "content-length" in told else str(len(answer.body))
    for name, value in answer.headers:
        if name.lower() not in _HOP and name.lower() != "content-length":
            request.send_header(name, value)
    if answer.status not in (204, 304):
        request.send_header("Content-Length", length)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(answer.body[: int(len(answer.body) * share)])
    request.wfile.flush()


def _hang_up(request: BaseHTTPRequestHandler) -> None:
    """Reset the connection at once."""
    request.close_connection = True
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.connection.close()
