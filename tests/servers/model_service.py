"""A model service on loopback, scripted by a test: whole answers, streams, faults. The rest fails the test."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Literal

from tests.servers.loopback import LoopbackServer, Quiet

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class AskedRequest:
    """A request as it arrived."""

    method: str
    path: str
    """with its query"""
    headers: Sequence[tuple[str, str]]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def key(self) -> str | None:
        found = [value for name, value in self.headers if name.lower() == "authorization"]
        assert len(found) <= 1
        return found[0].removeprefix("Bearer ") if found else None

    @property
    def context(self) -> str:
        """The system message with passages; empty if there is none."""
        found = [each["content"] for each in self.body["messages"] if "<documents>" in str(each.get("content"))]
        found = [each for each in found if isinstance(each, str)]
        return found[0] if found else ""

    @property
    def everything(self) -> bytes:
        """All bytes that arrived, for a look at what must not be among them."""
        head = "\n".join([self.method, self.path, *(f"{name}: {value}" for name, value in self.headers)])
        return head.encode() + b"\n" + self.content


@dataclass(frozen=True)
class ModelAnswer:
    """An answer."""

    pieces: tuple[bytes, ...]
    """parts of the body, each sent at once"""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    end: Literal["whole", "cut", "silence"] = "whole"
    """whole; the connection is cut before the end; nothing more comes until the client is gone"""
    step: threading.Semaphore | None = None
    """released by the test for each piece"""
    raw: bool = False
    """True if the pieces are all that is sent, without a status line"""


Rule = Callable[[AskedRequest], ModelAnswer | None]


def whole(value: Any, status: int = 200, **headers: str) -> ModelAnswer:
    """Return an answer of JSON."""
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return ModelAnswer((content,), status, {"Content-Type": "application/json", **named})


def said(text: str | None, calls: Sequence[dict[str, Any]] = (), tokens: tuple[int, int] = (10, 5)) -> ModelAnswer:
    """Return a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    finish = "tool_calls" if calls else "stop"
    return whole(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        }
    )


def call(name: str, call_id: str = "call_a", **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def chunk(delta: Any = None, *, finish: str | None = None, index: int = 0, number: int = 1, **more: Any) -> bytes:
    """Return an event with a chunk of a choice."""
    choice = {"index": index, "delta": {} if delta is None else delta, "finish_reason": finish}
    value = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": "m"}
    return event({**value, "choices": [choice], **more})


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def usage_chunk(tokens: tuple[int, int] = (10, 5), number: int = 1) -> bytes:
    """Return the last chunk of a stream with `include_usage`."""
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    value = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": "m"}
    return event({**value, "choices": [], "usage": usage})


def streamed(*pieces: bytes, done: bool = True) -> ModelAnswer:
    """Return a stream of events."""
    return ModelAnswer((*pieces, *([DONE] if done else [])), headers={"Content-Type": "text/event-stream"})


def text_stream(text: str, number: int = 1, usage: tuple[int, int] | None = None) -> ModelAnswer:
    """Return a stream of a text, word by word."""
    words = [chunk({"content": word}, number=number) for word in text.replace(" ", "\0 ").split("\0")]
    tail = [] if usage is None else [usage_chunk(usage, number)]
    return streamed(
        chunk({"role": "assistant", "content": ""}, number=number), *words, chunk(finish="stop", number=number), *tail
    )


def call_stream(*calls: dict[str, Any], text: str = "", number: int = 1) -> ModelAnswer:
    """Return a stream of calls, in pieces as OpenAI sends them."""
    pieces = [chunk({"role": "assistant", "content": None}, number=number)]
    if text:
        pieces.append(chunk({"content": text}, number=number))
    for index, each in enumerate(calls):
        function = each["function"]
        begin = {**each, "index": index, "function": {"name": function["name"], "arguments": ""}}
        pieces.append(chunk({"tool_calls": [begin]}, number=number))
        for start in range(0, len(function["arguments"]), 5):
            part = {"index": index, "function": {"arguments": function["arguments"][start : start + 5]}}
            pieces.append(chunk({"tool_calls": [part]}, number=number))
    return streamed(*pieces, chunk(finish="tool_calls", number=number))


def failing(status: int, message: str, **error: Any) -> ModelAnswer:
    """Return an error in OpenAI's form."""
    return whole({"error": {"message": message, "type": "error", "param": None, "code": None, **error}}, status)


def cut(answer: ModelAnswer, pieces: int) -> ModelAnswer:
    """Return the answer, with the connection cut after some pieces."""
    return replace(answer, pieces=answer.pieces[:pieces], end="cut")


def silent(answer: ModelAnswer, pieces: int) -> ModelAnswer:
    """Return the answer, with silence after some pieces."""
    return replace(answer, pieces=answer.pieces[:pieces], end="silence")


class ModelService(LoopbackServer):
    """The service. A request that the script does not expect fails the `with` block, and so does an unused answer.

    Args:
        script: answers to chats in order; or a rule for every request.
    """

    def __init__(self, *script: ModelAnswer, rule: Rule | None = None) -> None:
        self.requests: list[AskedRequest] = []
        self.gone = threading.Event()
        """set when a client leaves before the end of its answer"""
        self._script = list(script)
        self.rule = rule
        self.unexpected: list[str] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                content = self._read_body()
                if content is None:
                    self.close_connection = True
                    owner.gone.set()
                    return
                asked = AskedRequest(self.command, self.path, list(self.headers.items()), content)
                owner._send(self, owner._answer_to(asked))

            def _read_body(self) -> bytes | None:
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    found = b""
                    while size := int(self.rfile.readline() or b"-1", 16):
                        if size < 0:
                            return None
                        found += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                    return found
                length = int(self.headers.get("Content-Length") or 0)
                content = self.rfile.read(length)
                return content if len(content) == length else None

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 (as http.server calls them)

        super().__init__(Handler)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        super().__exit__(kind, error, trace)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Fail if a request was not expected, or an answer not asked for."""
        assert self.unexpected == []
        assert self._script == [], "never asked for"

    def forget(self) -> None:
        """Begin anew."""
        self.requests.clear()
        self.unexpected.clear()
        self._script.clear()
        self.gone.clear()
        self.rule = None

    def expect(self, *script: ModelAnswer) -> None:
        """Continue the script."""
        with self._lock:
            self._script += script

    def _answer_to(self, asked: AskedRequest) -> ModelAnswer:
        with self._lock:
            self.requests.append(asked)
            scripted = None
            if self.rule is None and (asked.method, asked.path) == ("POST", CHAT) and self._script:
                scripted = self._script.pop(0)
        if self.rule is not None:
            try:
                scripted = self.rule(asked)
            except Exception as failed:  # noqa: BLE001 - any error of a rule is raised when the service ends
                self.unexpected.append(f"{type(failed).__name__}: {failed}")
                return failing(500, "the rule failed")
        if scripted is None:
            self.unexpected.append(f"{asked.method} {asked.path} {asked.content[:300]!r}")
            return failing(500, "unscripted")
        return scripted

    def _send(self, handler: BaseHTTPRequestHandler, answer: ModelAnswer) -> None:
        try:
            if answer.raw:
                handler.wfile.write(b"".join(answer.pieces))
                handler.close_connection = True
                return
            self._send_answer(handler, answer)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
            if not self._stopped.is_set():
                self.gone.set()

    def _send_answer(self, handler: BaseHTTPRequestHandler, answer: ModelAnswer) -> None:
        is_stream = "event-stream" in answer.headers.get("Content-Type", "") or answer.end != "whole"
        length = str(sum(map(len, answer.pieces)))
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header(*(("Transfer-Encoding", "chunked") if is_stream else ("Content-Length", length)))
        handler.end_headers()
        for piece in answer.pieces:
            while answer.step is not None and not answer.step.acquire(timeout=0.02):
                self._check_client(handler)
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_stream else piece)
        while answer.end == "silence":
            self._check_client(handler)
            self._stopped.wait(0.01)
        if answer.end == "cut":
            handler.close_connection = True
        elif is_stream:
            handler.wfile.write(b"0\r\n\r\n")

    def _check_client(self, handler: BaseHTTPRequestHandler) -> None:
        if self._stopped.is_set() or _is_closed(handler.connection):
            raise BrokenPipeError


def _is_closed(connection: socket.socket) -> bool:
    """Return True if the other end closed the connection."""
    with suppress(OSError):
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    return True
