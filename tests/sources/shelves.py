"""Places of every kind, with documents that a test changes without the source's knowledge."""

from __future__ import annotations

import builtins
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from parquetry.model import Item, Unlisted
from parquetry.sources.base import Source
from tests.servers.web_server import Page, WebServer
from tests.sources.cloud_shelves import AzureShelf, GoogleShelf, S3Shelf, VercelShelf
from tests.sources.packed import zipped
from tests.sources.shelf import Shelf, opened

KINDS = ("local", "memory", "s3", "azure", "google", "vercel-public", "vercel-private", "archive", "web")


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
            # File timestamps may not advance between two quick writes.
            os.utime(file, ns=(before, before + 1))

    def delete(self, path: str) -> None:
        (self._folder / path).unlink()

    def missing(self) -> Source:
        return opened(f"{self.root}-missing")

    def halting(self) -> Source:
        """Folders nested beyond the system's maximum path length: even root cannot list the last one."""
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
    """A folder of fsspec's memory filesystem."""

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
    """The same memory filesystem, with a folder that cannot be listed.

    Args:
        refusal: name of the built-in exception to raise.
        folder: end of the folder's path.
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


class Below:
    """Part of a source below a path, as a source: an archive in a folder, the pages of a host."""

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
    """Pages of a web server, named by a list of URLs."""

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
        # Declared as binary, so that its bytes stay unchanged.
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


def shelf_of(
    kind: str, environment: pytest.MonkeyPatch, stack: ExitStack, folder: Path, server: Callable[[str], Any]
) -> Shelf:
    """Make an empty place of one of `KINDS`.

    Args:
        kind: kind of place.
        environment: for the variables that the place needs.
        stack: closes the place.
        folder: for files on disk.
        server: returns the fixture of a given name.
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
