"""A real HTTP server on loopback with files, batches, embeddings and chat completions, as OpenAI's API has them.

It keeps files and batches, and checks every line as the provider does. A test says when batches go on, and how.
"""

from __future__ import annotations

import email
import email.policy
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers import session_model
from tests.servers.embedding_server import Reply, Request, embeddings, refusal
from tests.servers.loopback import LoopbackServer, Quiet

MAX_REQUESTS = 50_000
MAX_BYTES = 200 * 1024 * 1024
EMBEDDINGS, CHAT = "/v1/embeddings", "/v1/chat/completions"
_ENDED = ("completed", "failed", "expired", "cancelled")

Gate = Callable[[str, str], Reply | None]
"""function from method and path to a reply that comes before the server's own; None lets the request through"""


@dataclass
class KeptBatch:
    """A batch at the provider."""

    id: str
    endpoint: str
    input_file_id: str
    metadata: Mapping[str, str]
    created_at: int
    lines: list[dict[str, Any]]
    status: str = "validating"
    errors: list[dict[str, Any]] = field(default_factory=list)
    output: list[dict[str, Any]] = field(default_factory=list)
    """lines of results"""
    failed: list[dict[str, Any]] = field(default_factory=list)
    """lines of errors"""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "input_file_id": self.input_file_id,
            "completion_window": "24h",
            "created_at": self.created_at,
            "status": self.status,
            "metadata": dict(self.metadata),
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "output_file_id": self.files.get("output"),
            "error_file_id": self.files.get("error"),
            "request_counts": {"total": len(self.lines), "completed": len(self.output), "failed": len(self.failed)},
        }


class BatchServer(LoopbackServer):
    """Serve the API while the `with` block lasts; an unexpected request fails the block.

    Args:
        dimension: length of vectors without `dimensions` in the request.
    """

    def __init__(self, dimension: int = 8) -> None:
        self.dimension = dimension
        self.gate: Gate = lambda _, __: None
        self.after: Callable[[str, str], None] = lambda _, __: None
        """called with method and path of each request that was carried out, before it is answered"""
        self.files: dict[str, bytes] = {}
        self.deleted: list[str] = []
        self.batches: list[KeptBatch] = []
        self.ordinary: list[Any] = []
        """bodies of requests to the ordinary endpoints"""
        self.seen: list[tuple[str, str]] = []
        """method and path of every request"""
        self.keys: set[str] = set()
        self.refuses: Callable[[Any], bool] = lambda _: False
        """returns True for the body of a request that fails with 400"""
        self.ends_at_once = False
        """True to complete every batch when it is next asked about"""
        self._unexpected: list[str] = []
        self._lock = threading.RLock()
        self._numbers = Counter[str]()
        self._charges: list[str] = []
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                content = self.rfile.read(length) if length else owner._chunks(self)
                if length and len(content) < length:
                    # The client was killed during its request.
                    self.close_connection = True
                    return
                reply = owner._reply_to(self.command, self.path, content, self.headers)
                raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except ConnectionError:
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815 (as http.server calls them)

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

    # --- what a test does

    def begin(self) -> None:
        """Let every batch begin."""
        for batch in self.batches:
            if batch.status == "validating":
                batch.status = "in_progress"

    def answer(self, batch: KeptBatch, count: int | None = None) -> None:
        """Answer requests of a batch: the first `count`, or all."""
        for line in batch.lines[len(batch.output) + len(batch.failed) : count]:
            body = self._charged(batch.endpoint, line["body"])
            response = {"status_code": body.status, "request_id": "r", "body": body.body}
            told = {"id": f"batch_req_{line['custom_id']}", "custom_id": line["custom_id"], "response": response}
            (batch.output if body.status == 200 else batch.failed).append({**told, "error": None})

    def complete(self, batch: KeptBatch | None = None) -> None:
        """Answer what is left of a batch, or of all, and end it."""
        for each in [batch] if batch else self.batches:
            if each.status not in _ENDED:
                self.answer(each)
                self.end(each, "completed")

    def end(self, batch: KeptBatch, status: str) -> None:
        """End a batch with what was answered so far."""
        if status in ("expired", "cancelled"):
            for line in batch.lines[len(batch.output) + len(batch.failed) :]:
                error = {"code": f"batch_{status}", "message": f"This request could not be executed: {status}."}
                batch.failed.append({"id": "r", "custom_id": line["custom_id"], "response": None, "error": error})
        batch.status = status
        self.write(batch)

    def write(self, batch: KeptBatch) -> None:
        """Write the files of a batch from its lines."""
        for kind, lines in (("output", batch.output), ("error", batch.failed)):
            if lines:
                content = "".join(json.dumps(line) + "\n" for line in lines).encode()
                batch.files[kind] = self._keep(content)

    def fail(self, batch: KeptBatch, code: str, message: str, line: int | None = None) -> None:
        """Refuse a batch as a whole."""
        batch.status, batch.errors = "failed", [{"code": code, "message": message, "line": line, "param": None}]

    def charged(self) -> Counter[str]:
        """Return how often each text or conversation was charged, by either way."""
        return Counter(self._charges)

    # --- the API

    def _reply_to(self, method: str, target: str, content: bytes, headers: Any) -> Reply:
        url = urlsplit(target)
        with self._lock:
            self.seen.append((method, url.path))
            self.keys.add(headers.get("Authorization", ""))
            try:
                gate = self.gate(method, url.path)
                reply = gate or self._own(method, url.path, parse_qs(url.query), content, headers)
                self.after(method, url.path)
            except AssertionError as error:
                self._unexpected.append(f"{method} {target}: {error}")
                reply = Reply(500, {"error": {"message": f"unscripted: {error}"}})
            return reply

    def _own(self, method: str, path: str, query: Mapping[str, list[str]], content: bytes, headers: Any) -> Reply:
        parts = path.removeprefix("/v1/").split("/")
        match method, parts:
            case "POST", ["embeddings"] | ["chat", "completions"]:
                body = json.loads(content)
                self.ordinary.append(body)
                return self._charged(path, body)
            case "POST", ["files"]:
                return self._uploaded(content, headers)
            case "GET", ["files", file_id, "content"]:
                if file_id not in self.files:
                    return refusal(404, f"No such File object: {file_id}")
                return Reply(200, self.files[file_id], {"Content-Type": "application/octet-stream"})
            case "DELETE", ["files", file_id]:
                self.deleted.append(file_id)
                return Reply(
                    200, {"id": file_id, "object": "file", "deleted": self.files.pop(file_id, None) is not None}
                )
            case "POST", ["batches"]:
                return self._created(json.loads(content))
            case "GET", ["batches"]:
                return self._listed(query)
            case "GET", ["batches", batch_id]:
                return self._told(batch_id)
            case "POST", ["batches", batch_id, "cancel"]:
                return self._cancelled(batch_id)
        raise AssertionError("no such route")

    def _uploaded(self, content: bytes, headers: Any) -> Reply:
        head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
        message = email.message_from_bytes(head + content, policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        assert set(parts) == {"purpose", "file"}, set(parts)
        assert parts["purpose"].get_payload(decode=True) == b"batch"
        file = parts["file"].get_payload(decode=True)
        assert isinstance(file, bytes)
        if len(file) > MAX_BYTES:
            return refusal(413, "The file is larger than 200 MB")
        return Reply(200, {"id": self._keep(file), "object": "file", "bytes": len(file), "purpose": "batch"})

    def _created(self, body: Any) -> Reply:
        assert set(body) == {"input_file_id", "endpoint", "completion_window", "metadata"}, body
        assert body["completion_window"] == "24h"
        assert len(body["metadata"]) <= 16
        assert all(len(key) <= 64 and len(value) <= 512 for key, value in body["metadata"].items())
        if body["endpoint"] not in (EMBEDDINGS, CHAT):
            return refusal(400, f"Invalid value: {body['endpoint']}")
        if body["input_file_id"] not in self.files:
            return refusal(400, "No such File object")
        lines, errors = _validated(self.files[body["input_file_id"]], body["endpoint"])
        batch = KeptBatch(
            self._number("batch"), body["endpoint"], body["input_file_id"], body["metadata"], int(time.time()), lines
        )
        if errors:
            batch.status, batch.errors = "failed", errors
        self.batches.append(batch)
        return Reply(200, batch.as_json)

    def _listed(self, query: Mapping[str, list[str]]) -> Reply:
        limit = int(query.get("limit", ["20"])[0])
        assert 1 <= limit <= 100
        newest = self.batches[::-1]
        if "after" in query:
            places = [place for place, each in enumerate(newest) if each.id == query["after"][0]]
            newest = newest[places[0] + 1 :]
        page = [each.as_json for each in newest[:limit]]
        return Reply(200, {"object": "list", "data": page, "has_more": len(newest) > limit})

    def _told(self, batch_id: str) -> Reply:
        batch = self._find(batch_id)
        if batch is None:
            return refusal(404, f"No batch found with id '{batch_id}'.")
        if self.ends_at_once:
            self.complete(batch)
        return Reply(200, batch.as_json)

    def _cancelled(self, batch_id: str) -> Reply:
        batch = self._find(batch_id)
        if batch is None or batch.status in _ENDED:
            return refusal(409 if batch else 404, "Cannot cancel")
        batch.status = "cancelling"
        return Reply(200, batch.as_json)

    def _find(self, batch_id: str) -> KeptBatch | None:
        return next((each for each in self.batches if each.id == batch_id), None)

    def _charged(self, endpoint: str, body: Any) -> Reply:
        """Answer one request by either way, and charge for it."""
        if self.refuses(body):
            return refusal(400, "This input is refused")
        if endpoint == EMBEDDINGS:
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            self._charges.extend(texts)
            return embeddings(Request(texts, body, {}), self.dimension)
        self._charges.append(json.dumps(body["messages"]))
        answer = session_model.answer(body)
        return Reply(answer.status, answer.body)

    def _keep(self, content: bytes) -> str:
        file_id = self._number("file")
        self.files[file_id] = content
        return file_id

    def _number(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}-{self._numbers[kind]}"

    def _chunks(self, handler: BaseHTTPRequestHandler) -> bytes:
        """Read a body that is sent in chunks."""
        if handler.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return b""
        found = b""
        while size := int(handler.rfile.readline() or b"0", 16):
            found += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
        return found


def _validated(file: bytes, endpoint: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lines of a file of requests, and the errors that the provider finds in them."""
    lines: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    seen: set[str] = set()
    inputs = 0

    def wrong(number: int | None, code: str, message: str) -> None:
        errors.append({"code": code, "message": message, "line": number, "param": None})

    for number, line in enumerate(_rows(file), start=1):
        try:
            value = json.loads(line)
        except ValueError:
            wrong(number, "invalid_json_line", "This line is not parseable as valid JSON.")
            continue
        if set(value) != {"custom_id", "method", "url", "body"} or value["method"] != "POST":
            wrong(number, "invalid_request", "custom_id, method, url and body are required")
        elif value["url"] != endpoint:
            wrong(number, "mismatched_url", "The URL does not match the endpoint of the batch.")
        elif value["custom_id"] in seen:
            wrong(number, "duplicate_custom_id", "The custom_id was used before.")
        elif not value["body"].get("model"):
            wrong(number, "missing_required_parameter", "body.model is missing")
        else:
            lines.append(value)
            given = value["body"].get("input")
            inputs += len(given) if isinstance(given, list) else 1
        seen.add(value.get("custom_id", ""))
    if not lines and not errors:
        wrong(None, "empty_file", "The file has no requests.")
    if len(lines) > MAX_REQUESTS or inputs > MAX_REQUESTS:
        wrong(None, "too_many_requests", "The file has more than 50,000 requests or inputs.")
    if len({value["body"]["model"] for value in lines}) > 1:
        wrong(None, "mismatched_model", "All requests of a batch have one model.")
    return lines, errors


def _rows(file: bytes) -> Iterable[bytes]:
    return (line for line in file.split(b"\n") if line.strip())
