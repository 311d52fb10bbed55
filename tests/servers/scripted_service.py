"""A service on loopback that gives scripted answers, in order, and fails a test that asks for anything else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass
class Scripted:
    """One request that is expected, and its answer."""

    method: str
    path: str
    """with its query string"""
    answer: Any = None
    """JSON; bytes are sent as they are"""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0
    """time before the answer"""

    @property
    def content(self) -> bytes:
        """The body of the answer."""
        return self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()


class ScriptedService(LoopbackServer):
    """The service."""

    def __init__(self, *script: Scripted) -> None:
        self.script = list(script)
        self.requests: list[tuple[str, str, Any]] = []
        """method, path with query, and body of each request; JSON as objects"""
        self.headers: list[Mapping[str, str]] = []
        self.unexpected: list[str] = []
        lock, service = threading.Lock(), self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                is_json = self.headers.get("content-type") == "application/json"
                with lock:
                    service.headers.append(dict(self.headers))
                    service.requests.append((self.command, self.path, json.loads(body) if is_json else body))
                    scripted = service.script.pop(0) if service.script else None
                if scripted is None or (scripted.method, scripted.path) != (self.command, self.path):
                    service.unexpected.append(f"{self.command} {self.path}, not {scripted}")
                    scripted = Scripted("", "", {"detail": "unscripted"}, 418)
                time.sleep(scripted.seconds)
                self.send_response(scripted.status)
                for name, value in {"Content-Length": str(len(scripted.content)), **scripted.headers}.items():
                    self.send_header(name, value)
                with suppress(BrokenPipeError, ConnectionResetError):
                    # A client that gave up is gone.
                    self.end_headers()
                    self.wfile.write(scripted.content)

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815 (as http.server calls them)

        super().__init__(Handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            assert self.unexpected == []
            assert self.script == []
