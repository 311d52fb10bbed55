"""Object stores with documents for the tests."""

from __future__ import annotations

from contextlib import ExitStack
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import pytest

from parquetry.sources.base import Source
from tests.servers.azurite import Azurite
from tests.servers.google_storage import GoogleStorage
from tests.servers.vercel_blob import STORE, VercelBlobServer
from tests.sources.shelf import Shelf, opened


class AzureShelf(Shelf):
    """A prefix in a container of Azurite; Azure treats a backslash as a slash."""

    refused = frozenset({"a/../up.md", "a/./here.md", "back\\slash.md", "escape\\x41.md"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, server: Azurite) -> None:
        super().__init__(environment, stack)
        self._server = server
        self._container = server.container()
        self.root = f"abfs://{self._container}/the shelf"
        self.set_environment(server.environment())

    def put(self, path: str, content: bytes, metadata: dict[str, str] | None = None) -> None:
        self._server.put(self._container, f"the shelf/{path}", content, metadata)

    def delete(self, path: str) -> None:
        self._server.delete(self._container, f"the shelf/{path}")

    def missing(self) -> Source:
        return opened(f"abfs://{self._container}-missing")

    def denied(self) -> Source:
        self.set_environment({"AZURE_STORAGE_CONNECTION_STRING": self._server.connection_string(key="d3Jvbmc=")})
        return self.source()

    def halting(self) -> Source:
        self.put("a.md", b"a")
        port = self.cut(self._server.port)
        self.set_environment({"AZURE_STORAGE_CONNECTION_STRING": self._server.connection_string(port=port)})
        return self.source()


class GoogleShelf(Shelf):
    """A prefix in a bucket of fake-gcs-server, which needs no credentials and stores names as paths."""

    refused = frozenset({"a/../up.md", "a/./here.md"})
    options = MappingProxyType({"token": "anon"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, server: GoogleStorage) -> None:
        super().__init__(environment, stack)
        self._server = server
        self._bucket = server.bucket()
        self.root = f"gs://{self._bucket}/the shelf"
        self.set_environment(server.environment())

    def put(self, path: str, content: bytes) -> None:
        self._server.put(self._bucket, f"the shelf/{path}", content)

    def delete(self, path: str) -> None:
        self._server.delete(self._bucket, f"the shelf/{path}")

    def missing(self) -> Source:
        return opened(f"gs://{self._bucket}-missing", **self.options)

    def halting(self) -> Source:
        self.put("a.md", b"a")
        port = self.cut(self._server.port)
        self.set_environment({"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"})
        return self.source()


class VercelShelf(Shelf):
    """A prefix in a Vercel Blob store."""

    refused = frozenset({"a/../up.md", "a/./here.md", "double//slash.md", "/lead.md", "new\nline.md", "tab\t.md"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, access: str) -> None:
        super().__init__(environment, stack)
        self.server = stack.enter_context(VercelBlobServer(access, page_size=3))
        self.root = "vercel-blob://the shelf"
        self.set_environment(self.server.environment())

    def put(self, path: str, content: bytes) -> None:
        self.server.put(f"the shelf/{path}", content)

    def delete(self, path: str) -> None:
        del self.server.blobs[f"the shelf/{path}"]

    def missing(self) -> Source:
        self.server.is_gone = True
        return self.source()

    def denied(self) -> Source:
        self.set_environment(self.server.environment(token=f"vercel_blob_rw_{STORE}_expired"))
        return self.source()

    def halting(self) -> Source:
        for number in range(4):
            self.put(f"{number}.md", b"x")
        self.server.page_fault = "cut"
        return self.source()


class S3Shelf(Shelf):
    """A prefix in a bucket of SeaweedFS, which stores keys as paths."""

    refused = frozenset(
        {"a/../up.md", "a/./here.md", "double//slash.md", "/lead.md", "back\\slash.md", "escape\\x41.md"}
    )

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, server: Any) -> None:
        super().__init__(environment, stack)
        self._server, self._client = server, server.client()
        self._bucket = server.bucket()
        self.root = f"s3://{self._bucket}/the shelf"
        self.set_environment(server.environment())

    def put(self, path: str, content: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=f"the shelf/{path}", Body=content)

    def delete(self, path: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=f"the shelf/{path}")

    def missing(self) -> Source:
        return opened(f"s3://{self._bucket}-missing")

    def denied(self) -> Source:
        self.set_environment({"AWS_SECRET_ACCESS_KEY": "wrong"})
        return self.source()

    def halting(self) -> Source:
        self.put("a.md", b"a")
        port = self.cut(urlsplit(self._server.endpoint).port or 80)
        self.set_environment({"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
        return self.source()
