"""The files of a corpus on an object store: through fsspec, and through delta-rs for the tables."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from parquetry.errors import StorageError
from parquetry.storage.database import Connection
from parquetry.storage.files.filesystem import FileInfo, Made, Written, one_line_error
from parquetry.storage.files.object_store_options import KINDS, ObjectStoreOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from fsspec import AbstractFileSystem

_REFUSED = (409, 412)
"""HTTP status of a conditional write that another writer won"""
_UNSUPPORTED = (400, 501)
"""HTTP status of a store without conditional writes"""


class ObjectStore:
    """The files of one object store. Safe to use from several threads.

    Args:
        reach: connection details of the store.
    """

    def __init__(self, reach: ObjectStoreOptions) -> None:
        self._reach = reach
        self._filesystem: AbstractFileSystem = reach.filesystem
        self._errors: tuple[type[Exception], ...] = (*reach.errors, OSError)
        # fsspec takes 20 ms to import; a corpus on a disk needs none of it.
        from parquetry.storage.files.duckdb_filesystem import DuckdbFilesystem, Sizes

        sizes = Sizes(lambda folder: [(each.name, each.size) for each in self.entries(folder) if not each.is_folder])
        self._duckdb_filesystem = DuckdbFilesystem(reach.scheme, self._read, sizes)
        self._sizes = sizes

    def entries(self, folder: str) -> list[FileInfo]:
        with self._translated(f"{folder} cannot be listed"):
            try:
                found = self._filesystem.ls(folder, detail=True)
            except FileNotFoundError:
                # Folders of a store are only prefixes of names.
                return []
        entries = [
            FileInfo(posixpath.basename(each["name"].rstrip("/")), each.get("size") or 0, each["type"] == "directory")
            for each in found
        ]
        # Some clients list the object that marks a folder as a member of that folder.
        return sorted((each for each in entries if each.name), key=lambda each: each.name)

    def open(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        try:
            with self._translated(f"{path} cannot be read"):
                return pa.PythonFile(self._filesystem.open(path, "rb"), mode="r")
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise error.__cause__ from None
            raise

    def _read(self, path: str, start: int, end: int) -> bytes:
        with self._translated(f"{path} cannot be read"):
            try:
                return bytes(self._filesystem.cat_file(path, start=start, end=end))
            except FileNotFoundError:
                # Raised below as a missing file, outside the translation.
                self._sizes.learn(path, None)
        raise FileNotFoundError(path)

    def write(self, path: str, fill: Callable[[pa.NativeFile], object]) -> Written:
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        fill(sink)
        content = sink.getvalue()
        with self._translated(f"{path} cannot be written"):
            # A single request, or a multipart upload that becomes an object when it is complete.
            self._filesystem.pipe_file(path, content.to_pybytes())
        self._sizes.learn(path, content.size)
        return Written(content.size, hashlib.sha256(content).hexdigest())

    def delete(self, path: str) -> None:
        self._sizes.learn(path, None)
        with self._translated(f"{path} cannot be deleted"):
            try:
                self._filesystem.rm_file(path)
            except FileNotFoundError:
                return

    def create(self, path: str, content: bytes) -> Made:
        """Write an object on condition that none has that name."""
        with self._translated(f"{path} cannot be written"):
            try:
                self._filesystem.pipe_file(path, content, mode="create")
            except FileExistsError:
                return "there"
            except OSError as error:
                status = _status(error)
                if status in _REFUSED:
                    return "there"
                if status in _UNSUPPORTED:
                    return "unsupported"
                raise
        return "made"

    def table_options(self) -> dict[str, str]:
        with self._translated("credentials for the object store cannot be had"):
            return self._reach.table_options()

    def attach(self, connection: Connection) -> None:
        if not connection.filesystem_is_registered(self._reach.scheme):
            connection.register_filesystem(self._duckdb_filesystem)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Translate client errors into one line.

        Raises:
            StorageError: the store could not be reached, or refused the request.
        """
        try:
            yield
        except self._errors as error:
            raise StorageError(f"{what}: {one_line_error(error)}") from error


def open_store(scheme: str) -> ObjectStore:
    """Open the store that the environment configures for a URL scheme.

    Args:
        scheme: scheme in the spelling of `parquetry.storage.files.layout`.

    Raises:
        SettingsError: the store cannot be reached with these settings.
        MissingExtra: its client is not installed.
    """
    kind = KINDS[scheme]
    return _opened(
        scheme, tuple(sorted((name, os.environ[name]) for name in os.environ if name.startswith(kind.variables)))
    )


@lru_cache(maxsize=8)
def _opened(scheme: str, _environment: tuple[tuple[str, str], ...]) -> ObjectStore:
    """Return one client for as long as the environment is unchanged; creating one takes a while."""
    return ObjectStore(KINDS[scheme].reach())


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status behind a client's error."""
    while error is not None:
        response: Any = getattr(error, "response", None)
        if isinstance(response, dict):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        for name in ("status_code", "code"):
            if isinstance(status := getattr(error, name, None), int):
                return status
        error = error.__cause__
    return None
