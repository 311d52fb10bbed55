"""A temporary file without a name, which disappears when its process ends in any way."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from operator import attrgetter
from typing import IO, Any

from parquetry.model import Access, DocumentRow, Item
from parquetry.planning.diff import Change
from parquetry.storage.files.full_disk import naming


class AnonymousFile:
    """Append contents, and read them again by their place. Used from several threads.

    Args:
        what: first part of the file's name on systems that need one.
    """

    def __init__(self, what: str) -> None:
        with naming(tempfile.gettempdir()):
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix=f"parquetry-{what}-")  # noqa: SIM115 - see `close`
        self._end = 0
        self._lock = threading.Lock()
        self._closed = weakref.finalize(self, _close, self._file)

    def append(self, content: bytes) -> int:
        """Write a content and return its offset in bytes.

        Raises:
            OSError: the disk with temporary files is full; names its folder.
        """
        with self._lock, naming(tempfile.gettempdir()):
            offset = self._end
            self._file.seek(offset)
            self._file.write(content)
            self._file.flush()
            self._end += len(content)
            return offset

    def read(self, offset: int, size: int) -> bytes:
        """Return a part of the file.

        Raises:
            ValueError: the file is closed.
        """
        if not self._closed.alive:
            raise ValueError("the temporary file is closed, and what was in it is gone")
        content = os.pread(self._file.fileno(), size, offset)
        while len(content) < size:
            content += os.pread(self._file.fileno(), size - len(content), offset + len(content))
        return content

    def close(self) -> None:
        """Delete the file."""
        self._closed()


def _close(file: IO[bytes]) -> None:
    # On a full disk, what could not be written is tried again.
    with suppress(OSError):
        file.close()


def _made_of_fields(kind: type) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
    values = attrgetter(*(field.name for field in fields(kind)))
    return lambda record: (kind, values(record))


_REDUCERS: Mapping[type, Callable[[Any], Any]] = {
    kind: _made_of_fields(kind) for kind in (Access, Change, DocumentRow, Item)
}
"""records by their fields: pickling frozen classes with slots otherwise takes three times as long"""


def packed(record: object) -> bytes:
    """Return a record, or a list of records, as bytes for `unpacked`."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(record)
    return content.getvalue()


def unpacked(content: bytes | memoryview) -> Any:
    """Return what `packed` received. Only for contents that this process wrote into a file that only it can open."""
    return pickle.loads(content)  # noqa: S301
