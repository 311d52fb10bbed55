"""The files that anyone opens in some folders, as the kernel tells (Linux)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_OPENED = 0x20
_EVENT = struct.Struct("iIII")
_LARGEST = 1 << 20


@contextmanager
def opened(folders: Sequence[Path]) -> Iterator[set[Path]]:
    """Find the files that are opened in the folders themselves; known after the block.

    How often is not known: of two openings of a file, the kernel tells one if nothing else is opened in between.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK)
    watched = {libc.inotify_add_watch(queue, os.fsencode(folder), _OPENED): folder for folder in folders}
    assert queue >= 0
    assert min(watched) > 0
    found: set[Path] = set()
    try:
        yield found
        while content := _read(queue):
            while content:
                watch, _, _, length = _EVENT.unpack_from(content)
                name = content[_EVENT.size : _EVENT.size + length].rstrip(b"\0").decode()
                content = content[_EVENT.size + length :]
                if name:
                    found.add(watched[watch] / name)
    finally:
        os.close(queue)


def _read(queue: int) -> bytes:
    try:
        return os.read(queue, _LARGEST)
    except BlockingIOError:
        return b""
