"""A real HTTP server on loopback that speaks the chat API the way a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server says; `body` is sent as JSON."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def said(text: str | None, *, finish: str = "stop", refusal: str | None = None) -> Reply:
    """A correct reply of an assistant."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 120, "completion_tokens": 9, "total_tokens": 129}
    body = {"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return Reply(200, body)


def error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """An error in OpenAI's form; header names are written with underscores."""
    body = {"error": {"message": message, "type": code or "error", "code": code, "param": None}}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


class ChatServer(LoopbackServer):
    """Gives its replies one after another to `POST <url>/chat/completions` while the `with` block lasts.

    Whatever goes beyond the script is answered with 500, and the `with` block ends with an AssertionError; so does a
    script that was not played to its end.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.bodies: list[Any] = []
        self.keys: list[str] = []
        self._waiting = list(replies)
        self._unexpected: list[str] = []
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reply = owner._reply_to(self.path, content, self.headers.get("Authorization", ""))
                raw = json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None and (self._unexpected or self._waiting):
            raise AssertionError(f"unscripted: {self._unexpected}, never asked for: {len(self._waiting)}")

    def _reply_to(self, path: str, content: bytes, key: str) -> Reply:
        if path != "/v1/chat/completions" or not self._waiting:
            self._unexpected.append(path)
            return Reply(500, {"error": {"message": f"unscripted: {path}"}})
        self.bodies.append(json.loads(content))
        self.keys.append(key)
        return self._waiting.pop(0)
