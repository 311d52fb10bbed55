"""Where the files of a corpus are: a local folder, or an object store.

Both list, write and delete files, and hand over what the engines need to reach them: options for the Delta tables, a
filesystem for DuckDB. A local folder needs neither.
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
from typing import Protocol

import pyarrow as pa

from parquetry.errors import SettingsError, StorageError, first_line
from parquetry.storage.database import Connection
from parquetry.storage.files.durable import make_folder, replace
from parquetry.storage.files.full_disk import naming

_BLOCK = 1 << 20
_COLOUR = re.compile(r"\x1b\[\d+m")
_QUERY = re.compile(r"(https?://(?:(?!https?://)[^\s?])*+)\?\S*")
"""of an address: long, and on some stores it grants access"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a folder holds."""

    name: str
    size: int
    """bytes; 0 for a folder"""
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Written:
    """A file that is complete in its place."""

    size: int
    """bytes"""
    sha256: str
    """of its content, as hexadecimal digits"""


class Files(Protocol):
    """The files of a place."""

    def entries(self, folder: str) -> list[Entry]:
        """What a folder holds, by name; nothing if there is no such folder."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """A file to read at any position.

        Raises:
            FileNotFoundError: there is none.
        """
        ...

    def write(self, path: str, fill: Callable[[pa.NativeFile], object]) -> Written:
        """Write a file under its name, whole or not at all; it is on disk once this returns."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        ...

    def table_options(self) -> dict[str, str] | None:
        """How the Delta tables of this place are reached; asked for anew for every use, because credentials expire."""
        ...

    def lend(self, connection: Connection) -> None:
        """Let a DuckDB connection read the files of this place."""
        ...


class LocalFiles:
    """The files of this machine."""

    def entries(self, folder: str) -> list[Entry]:
        try:
            with os.scandir(folder) as found:
                entries = [(each.name, each.stat().st_size, each.is_dir()) for each in found]
        except FileNotFoundError:
            return []
        return [Entry(name, 0 if is_folder else size, is_folder) for name, size, is_folder in sorted(entries)]

    def open(self, path: str) -> pa.NativeFile:
        return pa.OSFile(path, "rb")

    def write(self, path: str, fill: Callable[[pa.NativeFile], object]) -> Written:
        final = Path(path)
        make_folder(final.parent)
        # Two writers of one name do not write into each other's file.
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

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def table_options(self) -> dict[str, str] | None:
        return None

    def lend(self, connection: Connection) -> None:
        """DuckDB reads local files by itself."""


def files_at(place: str) -> Files:
    """The files of the kind of place that a root or a path names.

    Raises:
        SettingsError: the place cannot be reached with the settings of the environment.
        MissingExtra: its client is not installed.
    """
    if "://" not in place:
        return LocalFiles()
    from parquetry.storage.files.object_store import open_store

    return open_store(place.partition("://")[0])


def sha256_of(path: str) -> str:
    """The SHA-256 of a file of a corpus, as hexadecimal digits.

    Raises:
        StorageError: the object store could not be asked.
    """
    digest = hashlib.sha256()
    with files_at(path).open(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def told(error: Exception) -> str:
    """What an error of a storage library says, in one line.

    The first line; of an error of delta-rs on an object store the chain of causes, which stand on lines of their own
    with an arrow, and at its end what the store replied.
    """
    text = _COLOUR.sub("", str(error))
    if "\u21b3" not in text:
        return _QUERY.sub(r"\1", first_line(error))
    causes = " ".join(text.partition("<")[0].replace("\u21b3", " ").split())
    parts = (_QUERY.sub(r"\1", causes), *(_element(text, name) for name in ("Code", "Message")))
    return ": ".join(part for part in parts if part)


def _element(reply: str, name: str) -> str:
    """What the first element of a name holds in a reply of a store; empty if there is none."""
    return reply.partition(f"<{name}>")[2].partition(f"</{name}>")[0]


def last_folder(root: str) -> Path:
    """The deepest folder that exists on the way to a local corpus.

    Raises:
        SettingsError: a file is in the place of the corpus, or on the way there, or a name is too long.
        OSError: it cannot be told.
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
    """Find out before anything is extracted and paid for whether a new local corpus can be written.

    Raises:
        SettingsError: a file is in its place, or on the way there.
        StorageError: the folder that it would stand in cannot be written.
    """
    place = last_folder(root)
    if not os.access(place, os.W_OK | os.X_OK):
        raise StorageError(f"corpus {root} cannot be opened: no permission to write to {place}")


def check_folders_writable(root: str, folders: list[str]) -> None:
    """Find out before anything is extracted and paid for.

    Raises:
        StorageError: a local folder of the corpus cannot be written.
    """
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StorageError(f"corpus {root} cannot be written: no permission to write to {folder}")
