"""A disk that is full from some moment on, as Python sees it: every call that writes below a folder fails."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

TWO_PLACES = ("link", "replace", "rename", "copyfile")
"""calls whose second argument is the path written to"""
CALLS = ((os, "fsync"), (os, "link"), (os, "replace"), (os, "rename"), (os, "mkdir"), (shutil, "copyfile"))


class Filled:
    """Count the calls that write, and fail all of them after a given one.

    Args:
        root: root folder of the disk.
        last: number of the last call that succeeds, 1-based; None if all succeed.
    """

    def __init__(self, root: Path, last: int | None) -> None:
        self._root = str(root)
        self._last = last
        self.calls: list[str] = []

    def count(self, name: str, place: str | int | os.PathLike[str]) -> None:
        path = str(Path(f"/proc/self/fd/{place}").readlink()) if isinstance(place, int) else os.fspath(place)
        if not path.startswith(self._root):
            return
        self.calls.append(f"{name} {path}")
        if self._last is not None and len(self.calls) > self._last:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.count(name, arguments[name in TWO_PLACES])
            return real(*arguments, **options)

        return call

    def opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str, mode: str = "rb", **options: Any) -> Any:
            if mode != "rb":
                self.count("open", path)
            return real(path, mode, **options)

        return call


@contextmanager
def filled(root: Path, last: int | None = None) -> Iterator[Filled]:
    """Make the disk of a folder full after the given number of calls that write."""
    disk = Filled(root, last)
    with pytest.MonkeyPatch.context() as patched:
        for module, name in CALLS:
            patched.setattr(module, name, disk.watched(name, getattr(module, name)))
        patched.setattr(pa, "OSFile", disk.opening(pa.OSFile))
        patched.setattr(Path, "write_bytes", disk.watched("write", Path.write_bytes))
        yield disk
