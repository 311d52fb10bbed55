"""A real HTTP server on loopback with the chat API, scripted by a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's reply; a `body` other than bytes is sent as JSON."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None
    """number of bytes of the body after which the connection is cut; None sends the whole body"""
    never: bool = False
    """True if the bytes beyond `sent`, or all bytes if that is None, are held back until the server stops"""

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Rule = Callable[[Any], Reply | None]
"""function from the body of a request to the reply; None for an unexpected request"""


def said(
    text: str | None, *, finish: str = "stop", refusal: str | None = None, tokens: tuple[int, int] = (120, 9)
) -> Reply:
    """Return a correct reply of an assistant; `tokens` are those of the question and of the answer."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    asked, answered = tokens
    usage = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
    body = {"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return Reply(200, body)


def said_too_long(text: str | None) -> Reply:
    """Return a reply that reached its limit of tokens."""
    return said(text, finish="length")


def said_json(value: Any, *, tokens: tuple[int, int] = (120, 9)) -> Reply:
    """Return a correct reply of an assistant that speaks JSON."""
    return said(json.dumps(value), tokens=tokens)


def error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """Return an error in OpenAI's form; header names are written with underscores."""
    body = {"error": {"message": message, "type": code or "error", "code": code, "param": None}}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def busy(seconds: float = 0) -> Reply:
    """Return a rate-limit error with the time to wait."""
    return error(429, "slow down", retry_after=f"{seconds:g}")


def cut(reply: Reply, sent: int) -> Reply:
    """Return the reply, with the connection closed after so many bytes of its body."""
    return replace(reply, sent=sent)


def stalled(reply: Reply, sent: int) -> Reply:
    """Return the reply, with nothing after so many bytes of its body, and the connection open."""
    return replace(reply, sent=sent, never=True)


def shortened(reply: Reply, length: int) -> Reply:
    """Return the reply as correct HTTP with only the first bytes of its body."""
    return replace(reply, body=reply.raw[:length])


def huge(size: int) -> Reply:
    """Return a reply with a text of so many bytes."""
    return said('{"entries": "' + "x" * size + '"}')


NEVER = Reply(200, {}, never=True)
"""the client has to give up by itself"""


def without_schemas(rule: Rule, forms: Sequence[str] = ("json_schema",), status: int = 400) -> Rule:
    """Return the rule at a service that refuses these forms of `response_format`."""

    def answer(body: Any) -> Reply | None:
        form = body.get("response_format", {}).get("type")
        return error(status, f"response_format {form} is not supported") if form in forms else rule(body)

    return answer


def with_caps(rule: Rule, names: Sequence[str], largest: int = 100_000) -> Rule:
    """Return the rule at a service with only these parameters for the length of a reply, up to a largest value."""

    def answer(body: Any) -> Reply | None:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in body and name not in names:
                return error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
            if body.get(name, 0) > largest:
                return error(400, f"'{name}' is too large: {body[name]}; {largest} tokens are left of the context")
        return rule(body)

    return answer


class ChatServer(LoopbackServer):
    """Reply to `POST <url>/chat/completions` while the `with` block lasts.

    A request beyond the script or the rule is answered with 500, and the `with` block ends with an AssertionError;
    so does a script that was not used up, and a rule that fails.

    Args:
        replies: replies in order, or a rule from a request's body to a reply; several threads call it.
    """

    def __init__(self, replies: Sequence[Reply] | Rule) -> None:
        self.bodies: list[Any] = []
        """bodies of the answered requests, in the order of arrival"""
        self.keys: list[str] = []
        self._rule = replies if callable(replies) else None
        self._waiting = [] if callable(replies) else list(replies)
        self._unexpected: list[str] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                content = self.rfile.read(length)
                if len(content) < length:
                    # The client was killed during its request.
                    self.close_connection = True
                    return
                reply = owner._reply_to(self.path, content, self.headers.get("Authorization", ""))
                if reply.never and reply.sent is None:
                    owner._stopped.wait()
                    self.close_connection = True
                    return
                raw = reply.raw
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw[: reply.sent])
                except ConnectionError:
                    self.close_connection = True
                if reply.sent is not None:
                    self.close_connection = True
                if reply.never:
                    owner._stopped.wait()

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        super().__exit__(kind, error, trace)
        if error is None and (self._unexpected or self._waiting):
            raise AssertionError(f"unscripted: {self._unexpected}, never asked for: {len(self._waiting)}")

    def _reply_to(self, path: str, content: bytes, key: str) -> Reply:
        reply, mistake = None, path
        if path == "/v1/chat/completions":
            try:
                body = json.loads(content)
                with self._lock:
                    self.bodies.append(body)
                    self.keys.append(key)
                    if self._rule is None:
                        reply = self._waiting.pop(0) if self._waiting else None
                if self._rule is not None:
                    reply = self._rule(body)
                mistake = f"{path}: {str(body)[-300:]}"
            except Exception as failed:  # noqa: BLE001 - any error of a rule is raised when the server ends
                mistake = f"{path}: {type(failed).__name__}: {failed}"
        if reply is None:
            with self._lock:
                self._unexpected.append(mistake)
            return Reply(500, {"error": {"message": f"unscripted: {mistake}"}})
        return reply
