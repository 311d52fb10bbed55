"""Places of every kind, with documents in them that a test changes behind the back of the source."""

from __future__ import annotations

import builtins
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from knowledge.model import Access, Item, Unlisted
from knowledge.sources.base import Place, Source
from knowledge.sources.providers import open_place
from tests.knowledge.sources.packed import zipped
from tests.servers.azurite import Azurite
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.google_storage import GoogleStorage
from tests.servers.vercel_blob import STORE, VercelBlobServer
from tests.servers.web_server import Page, WebServer

ACCESS = Access("individual", user_id="ada", tags=("x",))
_ENOUGH = 150
"""bytes of an answer: its head, and the beginning of a listing"""
KINDS = ("local", "memory", "s3", "azure", "google", "vercel-public", "vercel-private", "archive", "web")


def opened(uri: str, **options: object) -> Source:
    return open_place(Place(name="shelf", uri=uri, access=ACCESS, options=options))


class Shelf:
    """A fresh and empty place.

    Args:
        environment: for variables that last as long as the test.
        stack: for what has to be stopped after the test.
    """

    root = ""
    """URL"""
    refused: frozenset[str] = frozenset()
    """hostile names that cannot be given to a document there"""
    options: Mapping[str, object] = MappingProxyType({})
    """of the source"""

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self._environment, self._stack = environment, stack

    def put(self, path: str, content: bytes) -> None:
        raise NotImplementedError

    def delete(self, path: str) -> None:
        raise NotImplementedError

    def source(self) -> Source:
        return opened(self.root, **self.options)

    def missing(self) -> Source:
        """A place that does not exist."""
        raise NotImplementedError

    def denied(self) -> Source:
        """The place, for somebody who may not list it."""
        raise NotImplementedError

    def halting(self) -> Source:
        """The place with documents in it, of which some cannot be listed."""
        raise NotImplementedError

    def set_environment(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._environment.setenv(name, value)

    def cut(self, port: int) -> int:
        """The port of a relay to a server on this machine, that cuts its answers short."""
        proxy = self._stack.enter_context(CuttingProxy(port))
        proxy.allowed = _ENOUGH
        return proxy.port


class LocalShelf(Shelf):
    """A folder."""

    refused = frozenset({"a/../up.md", "a/./here.md", "double//slash.md", "/lead.md"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, folder: Path) -> None:
        super().__init__(environment, stack)
        self.root, self._folder = str(folder), folder

    def put(self, path: str, content: bytes) -> None:
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.stat().st_mtime_ns if file.exists() else 0
        file.write_bytes(content)
        if file.stat().st_mtime_ns == before:
            # The clock of files stands still between two quick writes.
            os.utime(file, ns=(before, before + 1))

    def delete(self, path: str) -> None:
        (self._folder / path).unlink()

    def missing(self) -> Source:
        return opened(f"{self.root}-missing")

    def halting(self) -> Source:
        """Folders so deep that their path is longer than the system takes: even root cannot list the last of them."""
        self.put("a.md", b"a")
        above = os.open(self._folder, os.O_RDONLY)
        for _ in range(20):
            os.mkdir("d" * 250, dir_fd=above)
            below = os.open("d" * 250, os.O_RDONLY, dir_fd=above)
            os.close(above)
            above = below
        os.close(above)
        return self.source()


class MemoryShelf(Shelf):
    """A folder of fsspec's memory file system."""

    refused = frozenset({"a/../up.md", "a/./here.md", "double//slash.md", "/lead.md"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack) -> None:
        super().__init__(environment, stack)
        self._name = uuid.uuid4().hex
        self.root = f"memory://{self._name}"
        self._filesystem = MemoryFileSystem()
        self._filesystem.makedirs(self._name)
        stack.callback(self._filesystem.rm, self._name, recursive=True)

    def put(self, path: str, content: bytes) -> None:
        self._filesystem.pipe_file(f"{self._name}/{path}", content)

    def delete(self, path: str) -> None:
        self._filesystem.rm_file(f"{self._name}/{path}")

    def missing(self) -> Source:
        return opened(f"{self.root}-missing")

    def denied(self) -> Source:
        return opened(f"refusing://{self._name}", refusal="PermissionError")

    def halting(self) -> Source:
        self.put("a.md", b"a")
        self.put("folder/deep/x.md", b"x")
        return opened(f"refusing://{self._name}", refusal="ConnectionResetError", folder="folder")


class RefusingFileSystem(MemoryFileSystem):
    """The same memory, of which a folder cannot be listed.

    Args:
        refusal: name of the built-in error that this raises.
        folder: what the folder's path ends in.
    """

    protocol = "refusing"

    def __init__(self, refusal: str, folder: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._refusal, self._folder = refusal, folder

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("refusing://"))
        return stripped

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        if path.rstrip("/").endswith(self._folder):
            raise getattr(builtins, self._refusal)(path)
        entries: list[Any] = super().ls(path, detail, **options)
        return entries


fsspec.register_implementation("refusing", f"{__name__}.RefusingFileSystem", clobber=True)


class AzureShelf(Shelf):
    """Below a prefix of a container of Azurite; Azure takes a backslash for a slash."""

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
    """Below a prefix of a bucket of fake-gcs-server, which lets everybody in and keeps names as paths."""

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
    """Below a prefix of a store of Vercel Blob."""

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


class Below:
    """What a source holds below a path, as a place of its own: an archive in a folder, the pages of a host."""

    def __init__(self, source: Source, above: str) -> None:
        self._source, self._above = source, above

    def scan(self, prefix: str) -> Iterator[Item | Unlisted]:
        for found in self._source.scan(self._above + prefix):
            yield replace(found, path=found.path.removeprefix(self._above))

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        read, content = self._source.fetch(replace(item, path=self._above + item.path))
        return replace(read, path=read.path.removeprefix(self._above)), content


class ArchiveShelf(Shelf):
    """A zip archive in a folder."""

    refused = frozenset(
        {"a/../up.md", "a/./here.md", "double//slash.md", "/lead.md", "back\\slash.md", "escape\\x41.md"}
    )

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack, folder: Path) -> None:
        super().__init__(environment, stack)
        self.root, self._file = str(folder), folder / "box.zip"
        self._contents: dict[str, bytes] = {}

    def put(self, path: str, content: bytes) -> None:
        self._contents[path] = content
        self._file.write_bytes(zipped(self._contents, date_time=(2031, 1, 1, 0, 0, 0)))

    def delete(self, path: str) -> None:
        del self._contents[path]
        self._file.write_bytes(zipped(self._contents))

    def source(self) -> Source:
        return Below(super().source(), "box.zip!/")

    def missing(self) -> Source:
        return opened(f"{self.root}-missing")

    def halting(self) -> Source:
        self.put("a.md", b"a" * 1000)
        self._file.write_bytes(self._file.read_bytes()[:-30])
        return super().source()


class WebShelf(Shelf):
    """Pages of a web server that a list names."""

    refused = frozenset({"a/../up.md", "a/./here.md"})

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack) -> None:
        super().__init__(environment, stack)
        self._server = stack.enter_context(WebServer())
        self.root = f"{self._server.url}/urls.txt"
        self.options = {"allow": [self._server.place], "requests_per_second": 1000, "kind": "list"}
        self._names: dict[str, str] = {}
        self._list()

    def _list(self) -> None:
        lines = "".join(f"{self._server.url}{address}\n" for address in self._names.values())
        self._server.pages["/urls.txt"] = Page(f"# of the shelf\n{lines}")

    def put(self, path: str, content: bytes) -> None:
        self._names[path] = "/" + quote(path)
        token = f'"{hashlib.blake2b(content).hexdigest()}"'
        # A text that says so, so that its bytes are left as they are.
        headers = {"Content-Type": "application/octet-stream"}
        page = Page(content, etag=token, modified="Wed, 05 Mar 2031 10:00:00 GMT", headers=headers)
        self._server.pages["/" + quote(path)] = page
        self._list()

    def delete(self, path: str) -> None:
        del self._server.pages[self._names.pop(path)]
        self._list()

    def source(self) -> Source:
        return Below(super().source(), f"{self._server.place}/")

    def halting(self) -> Source:
        self.put("a.md", b"a")
        self._server.pages["/urls.txt"] = Page("no", 503)
        return self.source()


class S3Shelf(Shelf):
    """Below a prefix of a bucket of SeaweedFS, which keeps keys as paths."""

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


def shelf_of(
    kind: str, environment: pytest.MonkeyPatch, stack: ExitStack, folder: Path, server: Callable[[str], Any]
) -> Shelf:
    """An empty place of one of `KINDS`.

    Args:
        kind: of place.
        environment: for the variables that it needs.
        stack: closes it.
        folder: for what stands on disk.
        server: gives the fixture of that name.
    """
    match kind:
        case "local":
            return LocalShelf(environment, stack, folder)
        case "memory":
            return MemoryShelf(environment, stack)
        case "s3":
            return S3Shelf(environment, stack, server("s3_server"))
        case "azure":
            return AzureShelf(environment, stack, server("azurite"))
        case "google":
            return GoogleShelf(environment, stack, server("google_storage"))
        case "archive":
            return ArchiveShelf(environment, stack, folder)
        case "web":
            return WebShelf(environment, stack)
        case _:
            return VercelShelf(environment, stack, kind.removeprefix("vercel-"))
