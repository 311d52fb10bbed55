"""The search index of a corpus: one DuckDB file per version, beside the corpus or in a cache folder.

A refresh never writes to a file that readers see. It takes the older of the two files that are kept (no longer read by
any process), updates it to the present version at the cost of what changed since, and renames it; only if the older
file is still being read, or there is none, the newer one is copied first. Readers hold a lease on the file that they
read; a file without a lease may be reused. The whole folder can be deleted without loss.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import sleep

import duckdb

from parquetry.errors import IndexNotWritten, StorageError, first_line
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, tuples
from parquetry.storage.files.durable import replace
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import Layout, Table, file_name
from parquetry.storage.index.build import FORMAT, IndexState, MemoryOf, UnfitIndex, read_state
from parquetry.storage.index.building import built, tell_second_attempt
from parquetry.storage.index.files import (
    FILE_NAME,
    IndexFile,
    delete,
    folder_of,
    kept,
    locked,
    make_place,
    open_file,
    rename,
    unread,
)
from parquetry.storage.index.open_index import OpenIndex, is_sound, memory_of, update, written
from parquetry.storage.index.segments import Division, segment_file, segment_files
from parquetry.storage.index.wear import needs_rebuild
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.lineage import all_replaced_by
from parquetry.storage.lake.snapshot_views import scan

log = logging.getLogger("parquetry")
KEPT = 2
"""number of files: the current one, and the previous one, which becomes the next"""
_BUILDING = "building-"
"""prefix of the name of an unfinished file"""
_CORRUPT = "Corrupt database file"
"""DuckDB's message for a block whose checksum does not match"""
_TRIES = 100
"""attempts to open a file that other processes are replacing"""
_PAUSE = 0.02
"""seconds between two attempts"""
_UNUSABLE = (duckdb.Error, StorageError, KeyError, ValueError, TypeError, AttributeError)
"""exceptions raised by reading a file that is not an index of this program"""


class IndexFolder:
    """The folder of a corpus's index files.

    Args:
        layout: layout of the corpus.
        settings: give the location of the folder and the language of the words.
    """

    def __init__(self, layout: Layout, settings: SearchSettings) -> None:
        self._language = settings.language
        # A caller that names no language reads an index of any language.
        self._any_language = "language" not in settings.model_fields_set
        self.path = folder_of(layout, settings)
        self.division = Division(self.path, settings.segment_chunks)
        """place and size of its segments"""

    def newest(self) -> IndexFile | None:
        """Return the index of the highest version."""
        return next(iter(self.files()), None)

    def files(self) -> list[IndexFile]:
        """Return all finished index files, newest first."""
        return [file for file in self._every_file() if file.lease.exists()]

    def _every_file(self) -> list[IndexFile]:
        """Return all index files, including those that lost their lease file in a power cut and cannot be read."""
        names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        versions = [int(match[1]) for name in names if (match := FILE_NAME.fullmatch(name))]
        return [self._file(version) for version in sorted(versions, reverse=True)]

    def _file(self, version: int) -> IndexFile:
        return IndexFile(self.path / f"index-{version}.duckdb", version)

    def refresh(self, snapshot: Snapshot) -> IndexFile:
        """Update the index to a version of the corpus; does nothing if it is there already, or further.

        Args:
            snapshot: snapshot of the lake.

        Raises:
            IndexNotWritten: the index cannot be built or written.
            StorageError: the corpus cannot be read.
        """
        if present := self._usable(snapshot):
            return present
        with _translated(f"the search index in {self.path} cannot be written", self.path):
            make_place(self.path)
            with locked(self.path / "refresh.lock"):
                return self._usable(snapshot) or self._switch(snapshot)

    def _usable(self, snapshot: Snapshot) -> IndexFile | None:
        """Return the newest file if it is of this version or a later one and can be read."""
        opened = self._open_newest(snapshot)
        if opened is None:
            return None
        opened.close()
        return self._file(opened.version)

    def _open_newest(self, snapshot: Snapshot) -> OpenIndex | None:
        newest = self.newest()
        return self._opened(newest, snapshot) if newest is not None and newest.version >= snapshot.version else None

    def _opened(self, file: IndexFile, snapshot: Snapshot | None = None) -> OpenIndex | None:
        """Open a file; None if it is gone, is being replaced, or is not an index that this program can use."""
        opened = open_file(file)
        if opened is None:
            return None
        try:
            state = read_state(opened.connection)
            if self._fits(state) and (snapshot is None or _is_of(state, snapshot)):
                return opened
        except _UNUSABLE:
            pass
        opened.close()
        return None

    def _fits(self, state: IndexState) -> bool:
        return state.format == FORMAT and (self._any_language or state.language == self._language)

    def _switch(self, snapshot: Snapshot) -> IndexFile:
        """Build the next file under a temporary name and rename it."""
        self._clear_unfinished()
        try:
            return self._build(snapshot, self.path / f"{_BUILDING}{os.getpid()}.duckdb")
        finally:
            # On a full disk, the file would take the space of later writes.
            self._clear_unfinished()

    def _clear_unfinished(self) -> None:
        """Delete unfinished files; the caller holds the lock."""
        unfinished = [file.path for file in self._every_file() if not file.lease.exists()]
        for left in (*self.path.glob(f"{_BUILDING}*"), *self.path.glob("*.tmp"), *unfinished):
            delete(left)
        for lease in self.path.glob("*.lease"):
            if not lease.with_suffix(".duckdb").exists():
                lease.unlink(missing_ok=True)
        needed = {name for file in self.files() for name in file.segments}
        for segment in segment_files(self.path):
            if segment.stem not in needed:
                delete(segment)

    def _build(self, snapshot: Snapshot, building: Path) -> IndexFile:
        brought = self._bring_forward(building, snapshot)
        segments = self._build_anew(snapshot, building) if brought is None else brought
        made = self._file(snapshot.version)
        made.begin_lease(segments)
        # The new file is on disk before the files that it replaces are deleted.
        replace(building, made.path)
        others = [file for file in self.files() if file != made]
        # A file of a later version was unusable, or this one would not have been built; if this one was built from
        # nothing, so were all the others.
        useless = [file for file in others if file.version > made.version or brought is None]
        for old in (*useless, *others[len(useless) + KEPT - 1 :]):
            delete(old.path)
            old.lease.unlink(missing_ok=True)
        return made

    def _build_anew(self, snapshot: Snapshot, building: Path) -> list[str]:
        """Build a file from the corpus; return the names of its segments."""
        return built(building, snapshot, self._present_language() or self._language, self.division)

    def _present_language(self) -> str | None:
        """Return the language of the existing index, for settings that name none."""
        newest = self.newest() if self._any_language else None
        opened = self._opened(newest) if newest else None
        if opened is None:
            return None
        language = read_state(opened.connection).language
        opened.close()
        return language

    def _take_over(self, building: Path) -> bool:
        """Provide a working file that holds an earlier version."""
        files = self.files()
        # One that lacks segments of the newest file has their rows, and would write them a second time.
        for spare in (file for file in files[1:] if file.segments == files[0].segments):
            with unread(spare) as free:
                taken = free and rename(spare.path, building)
            if taken:
                spare.lease.unlink(missing_ok=True)
                return True
        if not files:
            return False
        with kept(files[0]) as held:
            if held:
                shutil.copyfile(files[0].path, building)
            return held

    def _bring_forward(self, building: Path, snapshot: Snapshot) -> list[str] | None:
        """Update a file of an earlier version; return the names of its segments, or None if a rebuild is better."""
        for memory in (memory_of, None):
            if not self._take_over(building):
                return None
            try:
                return self._advance(building, snapshot, memory)
            except duckdb.OutOfMemoryException as error:
                tell_second_attempt(error)
            # It may have been written to halfway.
            delete(building)
        return None

    def _advance(self, building: Path, snapshot: Snapshot, memory: MemoryOf | None) -> list[str] | None:
        """Update a file; return the names of its segments, or None if a rebuild is better.

        Raises:
            duckdb.OutOfMemoryException: DuckDB needs more memory.
        """

        def brought(connection: Connection) -> bool:
            state = read_state(connection)
            if not self._fits(state) or state.version > snapshot.version or needs_rebuild(connection, snapshot):
                raise UnfitIndex
            return update(connection, snapshot, self.division, memory)

        try:
            return written(building, brought)
        except duckdb.OutOfMemoryException:
            raise
        except _UNUSABLE:
            # Any fault of a derived file is repaired by rebuilding it from the corpus.
            return None

    def opened_ones(self) -> Iterator[OpenIndex]:
        """Yield each index of this program's format that can be opened, of any version, newest first; to be closed."""
        for file in self.files():
            opened = self._opened(file)
            if opened is not None:
                yield opened

    def known_files(self) -> dict[Table, frozenset[str]]:
        """Return the names of the Parquet files of each table in the newest index; empty if there is none."""
        for opened in self.opened_ones():
            files = read_state(opened.connection).files
            opened.close()
            return {table: frozenset(names) for table, names in files.items()}
        return {}

    def clear(self) -> None:
        """Delete all index files; processes that have one open continue to read it."""
        for file in self.path.glob("*.*") if self.path.is_dir() else ():
            if file.suffix != ".lock":
                file.unlink(missing_ok=True)

    def open_version(self, snapshot: Snapshot) -> OpenIndex | None:
        """Open the index of exactly this version of the corpus; None if its file is not kept."""
        return self._opened(self._file(snapshot.version), snapshot)

    def open_older(self, snapshot: Snapshot) -> OpenIndex | None:
        """Open the newest index of an earlier version that may still be used; None if there is none.

        It may be used if the corpus has only grown since: nothing in it was erased, removed, or restricted to fewer
        readers.
        """
        for file in self.files():
            opened = self._opened(file) if file.version < snapshot.version else None
            if opened is None:
                continue
            with ExitStack() as unfit, suppress(duckdb.Error):
                unfit.callback(opened.close)
                if _is_only_outgrown(opened.connection, snapshot):
                    unfit.pop_all()
                    return opened
        return None

    def path_of(self, opened: OpenIndex) -> Path:
        """Return the path of an index that is a file."""
        return self._file(opened.version).path

    def is_damaged(self, opened: OpenIndex, error: Exception) -> bool:
        """True if a file that caused an error cannot be read in full, or the error itself reports damage."""
        return _CORRUPT in str(error) or not is_sound(self.path_of(opened))

    def discard(self, opened: OpenIndex) -> None:
        """Remove a file with damaged content, so that it is rebuilt.

        Raises:
            IndexNotWritten: the file cannot be deleted.
        """
        file = self._file(opened.version)
        with (
            _translated(f"the search index in {self.path} cannot be written", self.path),
            locked(self.path / "refresh.lock"),
        ):
            # Another process may have rebuilt it meanwhile.
            if opened.is_of(file.lease):
                # Otherwise, the next file would need them again.
                for segment in (segment_file(self.path, name) for name in file.segments):
                    if not is_sound(segment):
                        delete(segment)
                delete(file.path)
                file.lease.unlink(missing_ok=True)

    def open(self, snapshot: Snapshot) -> OpenIndex:
        """Open the index of a version of the corpus or a later one, after an update where needed.

        Args:
            snapshot: the newest snapshot of the lake.

        Raises:
            StorageError: the index cannot be built or read.
        """
        for _ in range(_TRIES):
            opened = self._open_newest(snapshot)
            if opened is not None:
                return opened
            self.refresh(snapshot)
            # The next attempt opens it, unless other processes have switched twice by then.
            sleep(_PAUSE)
        raise StorageError(f"the search index in {self.path} is replaced faster than it can be opened; try again")


def _is_of(state: IndexState, snapshot: Snapshot) -> bool:
    """True if an index is of this corpus, rather than of an earlier one at the same place with as many versions."""
    held = set(state.files.get("documents", ()))
    present = {file_name(file) for file in snapshot.files["documents"]}
    if state.version == snapshot.version:
        return held == present
    gone = present - held
    # Files of the snapshot may have given way to compacted ones since.
    since = [snapshot.layout.shard("documents", name) for name in sorted(held)] if gone else []
    return gone <= all_replaced_by(since)


def _is_only_outgrown(connection: Connection, snapshot: Snapshot) -> bool:
    """True if the index of an earlier version holds nothing that the corpus no longer shows."""
    held = set(read_state(connection).files.get("documents", ()))
    present = {file_name(file): file for file in snapshot.files["documents"]}
    if not held <= present.keys():
        return False
    since = [file for name, file in present.items() if name not in held]
    check_written(snapshot, "documents", since)
    filesystem_at(snapshot.layout.root).attach(connection)
    taken_back = tuples(
        connection,
        f"""SELECT 1 FROM parts.documents AS before
        JOIN ({scan("documents", since)}) AS since USING (namespace, document_id)
        WHERE since.removed OR (before.visibility, before.org_id, before.user_id)
            IS DISTINCT FROM (since.visibility, since.org_id, since.user_id) LIMIT 1""",
    )
    return not taken_back


@contextmanager
def _translated(what: str, place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        wrong = disk_full(error, place, what) or f"{what}: {error.strerror or error}"
        raise IndexNotWritten(str(wrong)) from error
    except duckdb.Error as error:
        raise IndexNotWritten(str(disk_full(error, place, what) or f"{what}: {first_line(error)}")) from error
    except IndexNotWritten:
        raise
    except StorageError as error:
        # Reads and writes use the same connection; the error names the file that was being written.
        cause = error.__cause__
        if (full := disk_full(error, place, what)) is not None:
            raise IndexNotWritten(str(full)) from error
        if isinstance(cause, duckdb.Error) and _BUILDING in str(cause):
            raise IndexNotWritten(f"{what}: {first_line(cause)}") from cause
        raise
