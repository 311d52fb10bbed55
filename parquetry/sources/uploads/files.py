"""Files of uploads: a folder of this machine, or a folder of any filesystem that fsspec supports.

Names are relative, with `/` between their parts, and made by this package alone.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from parquetry import ids
from parquetry.errors import (
    DISK_FULL,
    DiskFull,
    ParquetryError,
    SettingsError,
    StorageError,
    TransientError,
    first_line,
)
from parquetry.retrying import Backoff, retried
from parquetry.sources.base import Place
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.s3.endpoint import endpoint_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_BLOCK = 1 << 20
_SECONDS_OF_TRIES = 60
"""seconds during which a file is written again when other processes delete it, or its folder, meanwhile"""
_BACKOFF = Backoff(first=0.001, longest=0.05, longest_asked=0.05, jitter=1)
_AT_ONCE = 256
"""files that are read together"""
_SINGLE_REQUEST_BYTES = 8 * 1024 * 1024
"""content up to this size is written in one request"""
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
UNFINISHED = ".unfinished"
"""ending of a local file that is being written"""


class Files(Protocol):
    """A folder of files. Safe to use from several threads and processes."""

    uri: str
    """its place, for messages"""

    def write(self, name: str, content: bytes | Path) -> str:
        """Write a file completely or not at all, durably; return the content's hash."""
        ...

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            FileNotFoundError: it does not exist.
        """
        ...

    def read_all(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Read several small files; those that do not exist any more are left out."""
        ...

    def exists(self, name: str) -> bool:
        """Return True if there is a file of this name."""
        ...

    def hash(self, name: str) -> str | None:
        """Return the content hash of a file, computed in bounded memory; None if it does not exist."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it exists, durably."""
        ...

    def delete_folder(self, name: str) -> None:
        """Delete a folder if it is empty."""
        ...

    def folders(self, name: str = "") -> list[str]:
        """Return the names of the folders in a folder; empty if there is no such folder."""
        ...

    def tree(self, name: str) -> Iterator[str]:
        """Yield the name of each file two levels below the root, in the folders of a folder."""
        ...

    def files(self, name: str) -> list[str]:
        """Return the names of the files in a folder; empty if there is no such folder."""
        ...


def open_files(uri: str) -> Files:
    """Open a folder, or a URL of fsspec.

    Raises:
        SettingsError: it cannot be opened with the settings of the environment, or a package is missing.
    """
    return LocalFiles(local_path(uri).absolute()) if is_local(uri) else RemoteFiles(uri.rstrip("/"))


def blocks_of(content: bytes | Path) -> Iterator[bytes]:
    """Yield content in blocks, read as they are asked for."""
    if isinstance(content, bytes):
        yield from (content[start : start + _BLOCK] for start in range(0, len(content), _BLOCK))
        return
    with content.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


class LocalFiles:
    """A folder of this machine; only its owner may enter it."""

    def __init__(self, root: Path) -> None:
        self.uri = str(root)
        self._root = root

    def write(self, name: str, content: bytes | Path) -> str:
        final, begun = self._root / name, time.monotonic()
        with _kept_in(self.uri):
            # Other processes may delete the empty folder, one above it, or an unfinished manifest, in between.
            return retried(
                lambda: self._replaced(final, content),
                _BACKOFF,
                worth=lambda error: isinstance(error, FileNotFoundError) and not _is_gone(content),
                is_last=lambda _, __: time.monotonic() - begun > _SECONDS_OF_TRIES,
            )

    def _replaced(self, final: Path, content: bytes | Path) -> str:
        unfinished = final.with_name(f"{final.name}.{secrets.token_hex(4)}{UNFINISHED}")
        try:
            self._make_folder(final.parent)
            digest = _written(unfinished, content)
            unfinished.replace(final)
            _sync(final.parent)
        finally:
            unfinished.unlink(missing_ok=True)
        return digest

    def read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except NotADirectoryError as error:
            raise StorageError(f"uploads are kept in {self.uri}, and a file stands there or on the way") from error

    def read_all(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            with suppress(FileNotFoundError):
                yield name, self.read(name)

    def exists(self, name: str) -> bool:
        return (self._root / name).is_file()

    def hash(self, name: str) -> str | None:
        try:
            with (self._root / name).open("rb") as stream:
                return ids.stream_hash(stream)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, name: str) -> None:
        with _kept_in(self.uri), suppress(FileNotFoundError):
            (self._root / name).unlink()
            _sync((self._root / name).parent)

    def delete_folder(self, name: str) -> None:
        # Not empty: somebody hands in the same document at this moment.
        with suppress(OSError):
            (self._root / name).rmdir()

    def folders(self, name: str = "") -> list[str]:
        return sorted(each.name for each in self._entries(name) if each.is_dir())

    def files(self, name: str) -> list[str]:
        return sorted(each.name for each in self._entries(name) if not each.is_dir())

    def tree(self, name: str) -> Iterator[str]:
        for folder in self.folders(name):
            yield from (f"{name}/{folder}/{file}" for file in self.files(f"{name}/{folder}"))

    def _entries(self, name: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / name) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            # The folders above the root belong to others, the corpus for one.
            each.mkdir(PRIVATE_FOLDER if each.is_relative_to(self._root) else 0o777, exist_ok=True)
            _sync(each.parent)


class RemoteFiles:
    """A folder of an fsspec filesystem."""

    def __init__(self, uri: str) -> None:
        from parquetry.sources.filesystem import connect

        self.uri = uri
        self._filesystem: AbstractFileSystem
        options = _options(uri.partition("://")[0].lower())
        self._filesystem, root = connect(Place("uploads", uri, options=options))
        self._base = root.base

    def write(self, name: str, content: bytes | Path) -> str:
        path = self._base + name
        with self._reached(f"{self.uri}/{name} cannot be written"):
            size = len(content) if isinstance(content, bytes) else content.stat().st_size
            self._filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
            if size <= _SINGLE_REQUEST_BYTES:
                whole = content if isinstance(content, bytes) else content.read_bytes()
                self._filesystem.pipe_file(path, whole)
                return ids.content_hash(whole)
            with self._filesystem.open(path, "wb") as stream:
                return ids.copied_hash(blocks_of(content), stream.write)

    def read(self, name: str) -> bytes:
        with self._reached(f"{self.uri}/{name} cannot be read"):
            return bytes(self._filesystem.cat_file(self._base + name))

    def read_all(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for start in range(0, len(names), _AT_ONCE):
            some = [self._base + name for name in names[start : start + _AT_ONCE]]
            with self._reached(f"{self.uri} cannot be read"):
                found = self._filesystem.cat(some, recursive=False, on_error="return")
                contents = found if isinstance(found, dict) else {some[0]: found}
                for content in contents.values():
                    if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                        raise content
            for path, content in contents.items():
                if not isinstance(content, Exception):
                    yield self._relative(path), bytes(content)

    def exists(self, name: str) -> bool:
        with self._reached(f"{self.uri}/{name} cannot be read"):
            return bool(self._filesystem.exists(self._base + name))

    def hash(self, name: str) -> str | None:
        try:
            with (
                self._reached(f"{self.uri}/{name} cannot be read"),
                self._filesystem.open(self._base + name, "rb") as stream,
            ):
                return ids.stream_hash(stream)
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError), self._reached(f"{self.uri}/{name} cannot be deleted"):
            self._filesystem.rm_file(self._base + name)

    def delete_folder(self, name: str) -> None:
        """Do nothing: folders of a store are prefixes of names."""

    def folders(self, name: str = "") -> list[str]:
        return [_last(each) for each in self._listed(name) if each["type"] == "directory"]

    def files(self, name: str) -> list[str]:
        return [_last(each) for each in self._listed(name) if each["type"] == "file" and _last(each)]

    def tree(self, name: str) -> Iterator[str]:
        with self._reached(f"{self.uri}/{name} cannot be listed"):
            found = sorted(self._filesystem.find(self._base + name))
        yield from map(self._relative, found)

    def _relative(self, path: str) -> str:
        # Some clients leave out the slash that a name begins with.
        return path.lstrip("/").removeprefix(self._base.lstrip("/"))

    def _listed(self, name: str) -> list[Any]:
        with self._reached(f"{self.uri}/{name} cannot be listed"):
            try:
                return list(self._filesystem.ls((self._base + name).rstrip("/"), detail=True))
            except FileNotFoundError:
                return []

    @contextmanager
    def _reached(self, what: str) -> Iterator[None]:
        """Translate the errors of a client, which share no base class but Exception.

        Raises:
            TransientError: the place cannot be reached, or refuses.
        """
        try:
            yield
        except (ParquetryError, FileNotFoundError):
            raise
        except Exception as error:
            raise TransientError("unreachable", f"{what}: {type(error).__name__}: {first_line(error)}") from error


def _last(entry: Any) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def _options(scheme: str) -> dict[str, Any]:
    """Return the options of a client that do not follow from the environment by themselves."""
    if scheme in ("abfs", "abfss", "az"):
        return {"connection_string": os.environ.get("AZURE_STORAGE_CONNECTION_STRING"), "anon": False}
    if scheme not in ("s3", "s3a"):
        return {}
    import botocore.exceptions
    import botocore.session

    session = botocore.session.get_session()
    try:
        server, credentials = endpoint_of(session.create_client("s3")), session.get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise SettingsError(f"S3: {error}") from error
    endpoint = {} if server.other is None else {"endpoint_url": server.other}
    return {"anon": credentials is None, "client_kwargs": {"region_name": server.region}, **endpoint}


def _written(path: Path, content: bytes | Path) -> str:
    """Write a new private file, block by block, and sync it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "wb") as stream:
        digest = ids.copied_hash(blocks_of(content), stream.write)
        stream.flush()
        os.fsync(stream.fileno())
    return digest


def _is_gone(content: bytes | Path) -> bool:
    return isinstance(content, Path) and not content.exists()


def _sync(folder: Path) -> None:
    """Sync the names in a folder to disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _kept_in(place: str) -> Iterator[None]:
    """Translate errors of the system into those of a corpus that cannot be written.

    Raises:
        DiskFull: there is no space left.
        StorageError: the folder cannot be written.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise DiskFull(f"no space left on device: {place}; the upload was not kept") from error
        raise StorageError(f"uploads cannot be kept in {place}: {error.strerror}") from error


def size_and_hash(content: bytes | Path) -> tuple[int, str]:
    """Return size in bytes and hash of content, in bounded memory."""
    if isinstance(content, bytes):
        return len(content), ids.content_hash(content)
    with content.open("rb") as stream:
        digest = ids.stream_hash(stream)
        return stream.tell(), digest
