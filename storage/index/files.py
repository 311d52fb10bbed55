"""Files of search indexes: their location, leases, opening and deletion.

Readers hold a lease on the file that they read; a file without a lease may be reused.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from parquetry import ids
from parquetry.settings.home import user_cache
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.durable import PRIVATE, make_folder, sync
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout, file_name
from parquetry.storage.index.open_index import OpenIndex, attach
from parquetry.storage.index.segments import is_name, segment_file
from parquetry.storage.lake.lake import Snapshot

FILE_NAME = re.compile(r"index-(\d+)\.duckdb")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A finished index."""

    path: Path
    version: int
    """version of the corpus"""

    @property
    def lease(self) -> Path:
        """File on which readers hold a shared lock while they read."""
        return self.path.with_suffix(".lease")

    @property
    def segments(self) -> tuple[str, ...]:
        """Names of the segments that it needs, as its lease tells; none if it is gone."""
        with suppress(FileNotFoundError):
            return tuple(filter(is_name, self.lease.read_text("ascii", "replace").split()))
        return ()

    @property
    def own_bytes(self) -> int:
        """Bytes of the file alone; 0 if it is gone."""
        return _size(self.path)

    @property
    def bytes(self) -> int:
        """Bytes of the file and of those of its segments that are there."""
        return self.own_bytes + sum(_size(segment_file(self.path.parent, name)) for name in self.segments)

    def begin_lease(self, segments: Iterable[str]) -> None:
        """Create the lease of a file that is about to get its name, with the names of the segments that it needs."""
        self.lease.write_text("\n".join(segments), "ascii")
        if self.segments:
            sync(self.lease)


def folder_of(layout: Layout, settings: SearchSettings) -> Path:
    """Return the folder beside the corpus if it can be written to, else one in a cache."""
    mark = ids.place_hash(layout.root)
    if settings.index_folder is not None:
        return Path(settings.index_folder) / mark
    if layout.is_local:
        beside = Path(layout.index)
        if os.access(beside if beside.exists() else layout.root, os.W_OK | os.X_OK):
            return beside
    return user_cache() / mark


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def make_place(folder: Path) -> None:
    """Create the folder of an index; one in the user's cache is private, even if others may read the corpus."""
    make_folder(folder, PRIVATE if user_cache() in folder.parents else 0o777)


def open_file(file: IndexFile) -> OpenIndex | None:
    """Open a finished index; None if it has been removed meanwhile or is not a database that can be opened."""
    lease = _leased(file)
    if lease is None:
        return None
    with ExitStack() as unfinished, suppress(FileNotFoundError, duckdb.Error):
        unfinished.callback(os.close, lease)
        opened = OpenIndex(attach(file.path, read_only=True), file.version, lease)
        unfinished.pop_all()
        return opened
    return None


@contextmanager
def kept(file: IndexFile) -> Iterator[bool]:
    """Keep other processes from reusing a finished index for the block; yield False if it is gone or being replaced."""
    lease = _leased(file)
    try:
        yield lease is not None
    finally:
        if lease is not None:
            os.close(lease)


def _leased(file: IndexFile) -> int | None:
    """Take a reader's share of the lease of a file; return its descriptor, or None if the file is being replaced."""
    with ExitStack() as unfinished, suppress(FileNotFoundError, NotADirectoryError, BlockingIOError):
        lease = os.open(file.lease, os.O_RDONLY)
        unfinished.callback(os.close, lease)
        _share(lease)
        # The lease may belong to a file of this name that was removed before the lock was taken.
        if os.fstat(lease).st_ino == file.lease.stat().st_ino:
            unfinished.pop_all()
            return lease
    return None


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold the update lock: one process at a time updates an index; the others wait and find it up to date."""
    from filelock import lock_descriptor

    with lock.open("a") as stream:
        lock_descriptor(stream.fileno(), poll_interval=0.02)
        yield


@contextmanager
def unread(file: IndexFile) -> Iterator[bool]:
    """Keep readers away from a file for the block; yield False if a reader holds its lease."""
    try:
        stream = file.lease.open("rb")
    except FileNotFoundError:
        yield True
        return
    from filelock import lock_descriptor

    with stream:
        yield lock_descriptor(stream.fileno(), blocking=False)


def _share(lease: int) -> None:
    """Take a reader's share of a lease, or raise BlockingIOError if the file is being replaced.

    Windows needs no lease: it does not rename a file that a reader has open.
    """
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(lease, fcntl.LOCK_SH | fcntl.LOCK_NB)


def rename(path: Path, new: Path) -> bool:
    """Rename a database that the caller keeps readers away from; return False if Windows keeps it for a reader."""
    try:
        path.replace(new)
    except PermissionError:
        if sys.platform != "win32":
            raise
        return False
    return True


def delete(path: Path) -> None:
    """Delete a database with its log, or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    for each in (path, path.with_name(path.name + ".wal")):
        with suppress(FileNotFoundError):
            each.unlink()


def chunk_bytes(snapshot: Snapshot) -> int:
    """Return the bytes of the chunk shards of a version."""
    named = {file_name(file) for file in snapshot.files["chunks"]}
    layout = snapshot.layout
    entries = filesystem_at(layout.root).entries(layout.table("chunks"))
    return sum(entry.size for entry in entries if entry.name in named)
