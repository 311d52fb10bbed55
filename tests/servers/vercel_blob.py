"""A small real server on loopback with Vercel Blob's API, which serves blobs as Vercel's hosts do.

Environment variables alone direct the official client here: `VERCEL_BLOB_API_URL` names the API, and `HTTPS_PROXY`
directs requests for `*.blob.vercel-storage.com` to this server, whose certificate is trusted through `SSL_CERT_FILE`.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.servers.certificates import certificate_for
from tests.servers.loopback import Handler, LoopbackServer, Quiet

STORE = "tEsTsToRe123"
TOKEN = f"vercel_blob_rw_{STORE}_secretsecret"
_HOSTS = ".blob.vercel-storage.com"


@dataclass(frozen=True, slots=True)
class Blob:
    """One version of a blob."""

    content: bytes
    uploaded_at: datetime

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.content).hexdigest()}"'


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as received."""

    host: str
    path: str
    authorization: str | None


class VercelBlobServer(LoopbackServer):
    """A single store.

    Args:
        access: access mode of the store, `public` or `private`.
        page_size: maximum number of blobs in a page of a listing.
    """

    def __init__(self, access: str = "public", page_size: int = 1000) -> None:
        self.access, self.page_size = access, page_size
        self.blobs: dict[str, Blob] = {}
        self.cached: dict[str, Blob] = {}
        """cached versions, by pathname, that public reads get instead"""
        self.seen: list[Seen] = []
        self.page_fault = ""
        """fault of listings from the second page on: `error`, `cut`, `empty`, `repeat` or none"""
        self.is_gone = False
        """True if the store no longer exists"""
        self._clock = datetime(2026, 1, 1, tzinfo=UTC)
        self._folder = tempfile.TemporaryDirectory()
        hosts = (f"*.{access}{_HOSTS}" for access in ("public", "private"))
        self._certificate = certificate_for(Path(self._folder.name), *hosts)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._certificate.server)
        super().__init__(_Handler, lambda place, handler: _Server(self, tls, place, handler))

    def put(self, pathname: str, content: bytes) -> None:
        self._clock += timedelta(seconds=1)
        self.blobs[pathname] = Blob(content, self._clock)

    def environment(self, token: str = TOKEN) -> dict[str, str]:
        """Return the environment variables that direct the official client here."""
        place = f"http://127.0.0.1:{self._server.server_port}"
        return {
            "BLOB_READ_WRITE_TOKEN": token,
            "VERCEL_BLOB_API_URL": f"{place}/api/blob",
            "HTTPS_PROXY": place,
            "SSL_CERT_FILE": str(self._certificate.authority),
        }

    def url_of(self, pathname: str) -> str:
        return f"https://{STORE.lower()}.{self.access}{_HOSTS}/{quote(pathname)}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._folder.cleanup()

    def listed(self, prefix: str, cursor: str | None, limit: int) -> dict[str, Any]:
        names = sorted(name for name in self.blobs if name.startswith(prefix))
        start = int(cursor or 0)
        end = start + min(limit, self.page_size)
        page: dict[str, Any] = {
            "blobs": [self.described(name) for name in names[start:end]],
            "hasMore": end < len(names),
        }
        if page["hasMore"]:
            page["cursor"] = str(end)
        if start and self.page_fault == "empty":
            page |= {"blobs": [], "hasMore": True, "cursor": str(end)}
        if start and self.page_fault == "repeat":
            page |= {"hasMore": True, "cursor": cursor}
        return page

    def described(self, name: str) -> dict[str, Any]:
        blob = self.blobs[name]
        return {
            "url": self.url_of(name),
            "downloadUrl": f"{self.url_of(name)}?download=1",
            "pathname": name,
            "size": len(blob.content),
            "uploadedAt": blob.uploaded_at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "etag": blob.etag,
        }


class _Server(ThreadingHTTPServer):
    def __init__(self, store: VercelBlobServer, tls: ssl.SSLContext, place: tuple[str, int], handler: Handler) -> None:
        super().__init__(place, handler)
        self.store, self.tls = store, tls


class _Handler(Quiet, BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    host = ""
    """host to which the connection was tunnelled"""

    def do_CONNECT(self) -> None:
        self.host = self.path.partition(":")[0]
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        if not self.host.endswith(_HOSTS):
            self.server.store.seen.append(Seen(self.host, "", None))
            self.close_connection = True
            return
        self.request = self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        if self.host:
            self.connection.close()

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(asked.query, keep_blank_values=True).items()}
        self.server.store.seen.append(Seen(self.host, self.path, self.headers.get("Authorization")))
        if self.host:
            self._give_out(unquote(asked.path).removeprefix("/"), query)
        elif self._is_allowed(asked.path, "/api/blob"):
            self._describe(query) if "url" in query else self._list(query)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        asked = urlsplit(self.path)
        if self._is_allowed(asked.path, "/api/blob"):
            name = parse_qs(asked.query)["pathname"][0]
            if name in self.server.store.blobs and self.headers.get("x-allow-overwrite") != "1":
                self._refuse(400, "bad_request", "This blob already exists, use `allowOverwrite: true`")
                return
            self.server.store.put(name, content)
            self._send(200, _uploaded(self.server.store.described(name)))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_allowed(self.path, "/api/blob/delete"):
            for url in body["urls"]:
                self.server.store.blobs.pop(_name(url), None)
            self._send(200, {})

    def _list(self, query: Mapping[str, str]) -> None:
        if query.get("cursor") and self.server.store.page_fault == "error":
            self._refuse(503, "service_unavailable", "The blob service is currently not available")
            return
        page = self.server.store.listed(query.get("prefix", ""), query.get("cursor"), int(query.get("limit", 1000)))
        self._send(200, page, cut=bool(query.get("cursor")) and self.server.store.page_fault == "cut")

    def _describe(self, query: Mapping[str, str]) -> None:
        name = _name(query["url"])
        if name not in self.server.store.blobs:
            self._refuse(404, "not_found", "The requested blob does not exist")
            return
        self._send(200, _uploaded(self.server.store.described(name)) | {"cacheControl": "public, max-age=2592000"})

    def _give_out(self, name: str, query: Mapping[str, str]) -> None:
        blob = self.server.store.blobs.get(name)
        if "cache" not in query or self.server.store.access == "public":
            blob = self.server.store.cached.get(name, blob)
        if self.server.store.access == "private" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(403, "forbidden", "Forbidden")
        elif blob is None or self.host != urlsplit(self.server.store.url_of("")).hostname:
            self._refuse(404, "not_found", "The requested blob does not exist")
        else:
            self._send(
                200, blob.content, {"ETag": f"W/{blob.etag}", "Last-Modified": format_datetime(blob.uploaded_at)}
            )

    def _is_allowed(self, path: str, expected: str) -> bool:
        if path != expected or self.headers.get("x-api-version") != "12":
            self._refuse(400, "bad_request", f"unscripted: {self.command} {self.path}")
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(403, "forbidden", "Access denied, please provide a valid token for this resource.")
        elif self.server.store.is_gone:
            self._refuse(404, "store_not_found", "This store does not exist.")
        else:
            return True
        return False

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._send(status, {"error": {"code": code, "message": message}})

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None, *, cut: bool = False) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream" if body is raw else "application/json")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw[: len(raw) // 2] if cut else raw)
        self.close_connection = self.close_connection or cut


def _uploaded(described: Mapping[str, Any]) -> dict[str, Any]:
    return {**described, "contentType": "text/plain", "contentDisposition": "inline"}


def _name(url_or_pathname: str) -> str:
    parts = urlsplit(url_or_pathname)
    return unquote(parts.path).removeprefix("/") if parts.scheme == "https" else url_or_pathname
