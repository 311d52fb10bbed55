"""What DuckDB reads the files of an object store through.

Files of tables are written once and never changed, so that what is known of one is asked once, and a small one is
fetched at once.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile

_BLOCK = 1024 * 1024
"""bytes that are fetched beyond what was asked for; a smaller file is fetched whole"""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Sizes:
    """Sizes of files, from the listings of their folders. Safe to use from several threads.

    Args:
        listed: gives (name, size) of what a folder holds.
    """

    def __init__(self, listed: Callable[[str], list[tuple[str, int]]]) -> None:
        self._listed = listed
        self._known: dict[str, int] = {}

    def of(self, path: str) -> int | None:
        """Bytes of a file; None if there is none."""
        if path not in self._known:
            folder = posixpath.dirname(path)
            self._known.update({posixpath.join(folder, name): size for name, size in self._listed(folder)})
        return self._known.get(path)

    def learn(self, path: str, size: int | None) -> None:
        """Take over what is known of a file; None for one that is not there any more."""
        if size is None:
            self._known.pop(path, None)
        else:
            self._known[path] = size


class LentFiles(AbstractFileSystem):  # type: ignore[misc]
    """A filesystem that reads files of an object store and does nothing else.

    Args:
        scheme: of addresses.
        read: gives the bytes of a file from a position to before another.
        sizes: of the files.
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
        """A file itself: where one is not there, DuckDB looks for a folder of its name."""
        found = self.info(path)
        return [found if detail else path]

    def modified(self, path: str) -> datetime:  # noqa: ARG002 named by fsspec
        return _NEVER

    def _open(self, path: str, mode: str = "rb", **_: Any) -> AbstractBufferedFile:
        if mode != "rb":
            raise PermissionError(f"{path} is only read")
        size = self.info(path)["size"]
        return _LentFile(
            self, path, mode, block_size=_BLOCK, cache_type="all" if size <= _BLOCK else "readahead", size=size
        )

    def read_range(self, path: str, start: int, end: int) -> bytes:
        return self._read(path, start, end)


class _LentFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is being read."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.read_range(self.path, start, end)  # type: ignore[no-any-return]
