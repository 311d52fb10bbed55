"""A real HTTP server on loopback with the embeddings API, scripted by a test."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

import numpy as np

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request."""

    inputs: list[str]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """header names in lower case"""


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's reply; `body` is sent as JSON unless it is bytes."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Request], Reply]


def vector_of(text: str, dimension: int = 8) -> list[float]:
    """Return a vector that depends on the text alone; deliberately not of length one."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return [float(number) for number in np.random.default_rng(seed).normal(size=dimension).astype(np.float32) * 3]


def embeddings(request: Request, dimension: int = 8, **changes: Any) -> Reply:
    """Return a correct reply in the requested format; `changes` replace top-level keys."""
    dimension = request.body.get("dimensions", dimension)
    vectors: list[Any] = [vector_of(text, dimension) for text in request.inputs]
    if request.body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode() for vector in vectors]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    tokens = sum(len(text.split()) for text in request.inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(200, {"object": "list", "data": data, "model": request.body["model"], "usage": usage} | changes)


def counting(request: Request) -> Reply:
    """Report one token per byte."""
    tokens = sum(len(text.encode()) for text in request.inputs)
    return embeddings(request, usage={"prompt_tokens": tokens, "total_tokens": tokens})


def refusal(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """Return an error in OpenAI's form; header names are written with underscores."""
    error = {"message": message, "type": code or "error", "code": code, "param": None}
    return Reply(status, {"error": error}, {name.replace("_", "-"): value for name, value in headers.items()})


def scripted(replies: Iterable[Reply | Answer]) -> Answer:
    """Reply with one after another; a request beyond the last reply is an error of the test."""
    waiting = iter(replies)
    lock = threading.Lock()

    def answer(request: Request) -> Reply:
        with lock:
            reply = next(waiting, None)
        assert reply is not None, f"request beyond the script: {request.body}"
        return reply if isinstance(reply, Reply) else reply(request)

    return answer


class EmbeddingServer(LoopbackServer):
    """Serve `POST <url>/embeddings` while the `with` block lasts.

    An unexpected request is answered with 500, and the `with` block ends with an AssertionError.
    """

    def __init__(self, answer: Answer = embeddings) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._unexpected: list[str] = []
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._send(
                    owner._reply_to(self.path, content, {name.lower(): value for name, value in self.headers.items()})
                )

            def do_GET(self) -> None:
                self._send(owner._complain(f"GET {self.path}"))

            def _send(self, reply: Reply) -> None:
                raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
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
        if error is None and self._unexpected:
            raise AssertionError("; ".join(self._unexpected))

    def _reply_to(self, path: str, content: bytes, headers: dict[str, str]) -> Reply:
        if path != "/v1/embeddings":
            return self._complain(f"POST {path}")
        body = json.loads(content)
        request = Request(body["input"], body, headers)
        self.requests.append(request)
        try:
            return self._answer(request)
        except AssertionError as error:
            return self._complain(str(error))

    def _complain(self, what: str) -> Reply:
        self._unexpected.append(what)
        return Reply(500, {"error": {"message": f"unscripted: {what}"}})
