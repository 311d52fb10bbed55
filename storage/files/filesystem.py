"""Filesystems of a corpus: a local folder or an object store.

Both list, write and delete files, and provide what the engines need to reach them: storage options for the Delta
tables, a filesystem for DuckDB. A local folder needs neither.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from parquetry.errors import SettingsError, StorageError, first_line
from parquetry.storage.database import Connection
from parquetry.storage.files.durable import make_folder, replace, sync
from parquetry.storage.files.full_disk import naming

if TYPE_CHECKING:
    import pyarrow as pa

Made = Literal["made", "there", "unsupported"]
"""outcome of a conditional write"""
_BLOCK = 1 << 20
_COLOUR = re.compile(r"\x1b\[\d+m")
_QUERY = re.compile(r"(https?://(?:(?!https?://)[^\s?])*+)\?\S*")
"""query string of a URL: long, and on some stores it grants access"""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder in a listing."""

    name: str
    size: int
    """bytes; 0 for a folder"""
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Written:
    """A file that has been written completely."""

    size: int
    """bytes"""
    sha256: str
    """SHA-256 of the content, as hexadecimal digits"""


class Filesystem(Protocol):
    """The filesystem interface of a corpus."""

    def entries(self, folder: str) -> list[FileInfo]:
        """List a folder, sorted by name; empty if there is no such folder."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access.

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def write(self, path: str, fill: Callable[[pa.NativeFile], object]) -> Written:
        """Write a file under its name, completely or not at all; it is on disk once this returns."""
        ...

    def create(self, path: str, content: bytes) -> Made:
        """Write a file on condition that none has that name; it is on disk once this returns."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        ...

    def table_options(self) -> dict[str, str] | None:
        """Return the storage options of the Delta tables; call it before each use, because credentials expire."""
        ...

    def attach(self, connection: Connection) -> None:
        """Attach these files to a DuckDB connection for reading."""
        ...


class LocalFilesystem:
    """The files of this machine."""

    def entries(self, folder: str) -> list[FileInfo]:
        try:
            with os.scandir(folder) as found:
                entries = [(each.name, each.stat().st_size, each.is_dir()) for each in found]
        except FileNotFoundError:
            return []
        return [FileInfo(name, 0 if is_folder else size, is_folder) for name, size, is_folder in sorted(entries)]

    def open(self, path: str) -> pa.NativeFile:
        import pyarrow as pa

        return pa.OSFile(path, "rb")

    def write(self, path: str, fill: Callable[[pa.NativeFile], object]) -> Written:
        import pyarrow as pa

        final = Path(path)
        make_folder(final.parent)
        # Each of two writers of one name writes a file of its own.
        unfinished = final.with_suffix(f".{os.getpid():x}-{threading.get_ident():x}.unfinished")
        try:
            with naming(final):
                with pa.OSFile(str(unfinished), "wb") as sink:
                    fill(sink)
                with unfinished.open("rb") as stream:
                    written = Written(unfinished.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest())
                replace(unfinished, final)
        finally:
            unfinished.unlink(missing_ok=True)
        return written

    def create(self, path: str, content: bytes) -> Made:
        final = Path(path)
        make_folder(final.parent)
        unfinished = final.with_suffix(f".{os.getpid():x}-{threading.get_ident():x}.unfinished")
        try:
            with naming(final):
                unfinished.write_bytes(content)
                sync(unfinished)
                os.link(unfinished, final)
                sync(final.parent)
        except FileExistsError:
            return "there"
        finally:
            unfinished.unlink(missing_ok=True)
        return "made"

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def table_options(self) -> dict[str, str] | None:
        return None

    def attach(self, connection: Connection) -> None:
        """Do nothing: DuckDB reads local files by itself."""


def filesystem_at(place: str) -> Filesystem:
    """Return the filesystem for a root or path.

    Raises:
        SettingsError: the place cannot be reached with the settings of the environment.
        MissingExtra: its client is not installed.
    """
    if "://" not in place:
        return LocalFilesystem()
    from parquetry.storage.files.object_store import open_store

    return open_store(place.partition("://")[0])


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file of a corpus, as hexadecimal digits.

    Raises:
        StorageError: the object store could not be reached.
    """
    digest = hashlib.sha256()
    with filesystem_at(path).open(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def one_line_error(error: Exception) -> str:
    """Return the message of a storage library's error in one line.

    Take the first line; for an error of delta-rs on an object store, take the chain of causes, which stand on lines of
    their own with an arrow and end with the reply of the store.
    """
    text = _COLOUR.sub("", str(error))
    if "\u21b3" not in text:
        return _QUERY.sub(r"\1", first_line(error))
    causes = " ".join(text.partition("<")[0].replace("\u21b3", " ").split())
    parts = (_QUERY.sub(r"\1", causes), *(_element(text, name) for name in ("Code", "Message")))
    return ": ".join(part for part in parts if part)


def _element(reply: str, name: str) -> str:
    """Return the content of the first element of a name in a reply of a store; empty if there is none."""
    return reply.partition(f"<{name}>")[2].partition(f"</{name}>")[0]


def last_folder(root: str) -> Path:
    """Return the deepest existing folder on the path of a local corpus.

    Raises:
        SettingsError: a file stands at the corpus path or on the way there, or a name is too long.
        OSError: the folders cannot be examined.
    """
    place = Path(root)
    try:
        while not place.exists():
            place = place.parent
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SettingsError(f"corpus {root} cannot be opened: {error.strerror}") from error
        raise
    if not place.is_dir():
        raise SettingsError(
            f"corpus {root} cannot be opened: {place} is a file, and a corpus is a folder; name one with --corpus or "
            "corpus.root"
        )
    return place


def check_can_be_made(root: str) -> None:
    """Check that a new local corpus can be written, before anything is extracted or paid for.

    Raises:
        SettingsError: a file stands at its path or on the way there.
        StorageError: the parent folder cannot be written to.
    """
    place = last_folder(root)
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"corpus {root} cannot be opened: no permission to write to {place}")


def check_folders_writable(root: str, folders: list[str]) -> None:
    """Check that the local folders of a corpus are writable, before anything is extracted or paid for.

    Raises:
        StorageError: a local folder of the corpus cannot be written to.
    """
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StorageError(f"corpus {root} cannot be written: no permission to write to {folder}")
