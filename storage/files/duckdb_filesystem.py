"""The filesystem through which DuckDB reads the files of an object store.

Files of tables are written once and never changed: the size of a file is requested once, and a small file is fetched
whole.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile

_BLOCK = 1024 * 1024
"""bytes fetched beyond the requested range; a smaller file is fetched whole"""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Sizes:
    """File sizes taken from folder listings. Safe to use from several threads.

    Args:
        listed: returns (name, size) for each file of a folder.
    """

    def __init__(self, listed: Callable[[str], list[tuple[str, int]]]) -> None:
        self._listed = listed
        self._known: dict[str, int] = {}

    def of(self, path: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""
        if path not in self._known:
            folder = posixpath.dirname(path)
            self._known.update({posixpath.join(folder, name): size for name, size in self._listed(folder)})
        return self._known.get(path)

    def learn(self, path: str, size: int | None) -> None:
        """Record the size of a file; None for a file that no longer exists."""
        if size is None:
            self._known.pop(path, None)
        else:
            self._known[path] = size


class DuckdbFilesystem(AbstractFileSystem):  # type: ignore[misc]
    """A read-only fsspec filesystem over the files of an object store.

    Args:
        scheme: URL scheme.
        read: returns the bytes of a file from a start (inclusive) to an end (exclusive).
        sizes: sizes of the files.
    """

    cachable = False

    def __init__(self, scheme: str, read: Callable[[str, int, int], bytes], sizes: Sizes) -> None:
        super().__init__()
        self.protocol = scheme
        self._read = read
        self._sizes = sizes

    def _strip_protocol(self, path: str) -> str:
        return path

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        size = self._sizes.of(path)
        if size is None:
            raise FileNotFoundError(path)
        return {"name": path, "size": size, "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """List a file as itself: when a file does not exist, DuckDB looks for a folder of its name."""
        found = self.info(path)
        return [found if detail else path]

    def modified(self, path: str) -> datetime:  # noqa: ARG002 named by fsspec
        return _NEVER

    def _open(self, path: str, mode: str = "rb", **_: Any) -> AbstractBufferedFile:
        if mode != "rb":
            raise PermissionError(f"{path} is only read")
        size = self.info(path)["size"]
        return _DuckdbFile(
            self, path, mode, block_size=_BLOCK, cache_type="all" if size <= _BLOCK else "readahead", size=size
        )

    def read_range(self, path: str, start: int, end: int) -> bytes:
        return self._read(path, start, end)


class _DuckdbFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file open for reading."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.read_range(self.path, start, end)  # type: ignore[no-any-return]
