"""Bytes of files: written block by block, whole or not at all, in a folder of the state folder."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from parquetry.errors import DISK_FULL, DiskFull, StorageError
from parquetry.serving.state.folder import PRIVATE_FILE
from parquetry.storage.files.durable import PRIVATE, make_folder, replace, sync

FOLDER = "files"
_UNFINISHED = ".unfinished"
_LONGEST_WRITE = 24 * 3600.0
"""seconds after which a file that is not finished, or that no row names, counts as left behind"""
_BLOCK = 1 << 20


class Incoming:
    """A file that is being written."""

    def __init__(self, folder: Path) -> None:
        self._place = folder / f"{secrets.token_hex(8)}{_UNFINISHED}"
        self._folder = folder
        self.size = 0
        """bytes so far"""
        try:
            self._stream = os.fdopen(os.open(self._place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "wb")
        except OSError as error:
            raise _not_kept(folder, error) from error

    def write(self, block: bytes) -> None:
        """Add bytes.

        Raises:
            StorageError: they cannot be written; DiskFull if there is no space left.
        """
        try:
            self._stream.write(block)
        except OSError as error:
            raise _not_kept(self._folder, error) from error
        self.size += len(block)

    def finish(self, id: str) -> None:
        """Give the file its id; it is on disk, with its name, once this returns.

        Raises:
            StorageError: as `write`.
        """
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            replace(self._place, self._folder / id)
        except OSError as error:
            raise _not_kept(self._folder, error) from error

    def discard(self) -> None:
        """Delete the file, unless it is finished."""
        # What could not be written is deleted all the same.
        with suppress(OSError):
            self._stream.close()
        self._place.unlink(missing_ok=True)


class FileFolder:
    """The bytes of all files of a service. Safe to use from several threads and processes.

    Args:
        state: state folder of the service.

    Raises:
        StorageError: the folder cannot be made.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER
        try:
            make_folder(self._folder, PRIVATE)
        except OSError as error:
            raise _not_kept(self._folder, error) from error

    def new(self) -> Incoming:
        """Begin a file.

        Raises:
            StorageError: it cannot be written.
        """
        return Incoming(self._folder)

    def path(self, id: str) -> Path:
        """Return the path of the bytes of a file."""
        return self._folder / id

    def joined(self, id: str, parts: Iterable[str]) -> int:
        """Write a file that consists of others; return its size in bytes.

        Raises:
            StorageError: it cannot be written, or one of them cannot be read.
        """
        written = self.new()
        try:
            for part in parts:
                with self.path(part).open("rb") as stream:
                    while block := stream.read(_BLOCK):
                        written.write(block)
            written.finish(id)
        except OSError as error:
            raise _not_kept(self._folder, error) from error
        finally:
            written.discard()
        return written.size

    def delete(self, *ids: str) -> None:
        """Delete files, durably; those that do not exist are deleted already.

        Raises:
            StorageError: one cannot be deleted.
        """
        try:
            for id_ in ids:
                self.path(id_).unlink(missing_ok=True)
            sync(self._folder)
        except OSError as error:
            raise StorageError(f"a file in {self._folder} cannot be deleted: {error.strerror}") from error

    def left_behind(self, known: Collection[str]) -> list[str]:
        """Return the names of old files that are not finished, or not known.

        Args:
            known: ids of the files that rows name.
        """
        before = time.time() - _LONGEST_WRITE
        with os.scandir(self._folder) as entries:
            return [each.name for each in entries if each.name not in known and each.stat().st_mtime < before]


def _not_kept(folder: Path, error: OSError) -> StorageError:
    if error.errno in DISK_FULL:
        return DiskFull(f"no space left on device: {folder}; the file was not kept")
    return StorageError(f"files cannot be kept in {folder}: {error.strerror}")
