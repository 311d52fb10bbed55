"""The Delta tables of a corpus: open, read, publish, look back, restore.

A publish is one commit to `documents`. Shards are registered before it and stay invisible until a current row names
their revision, so a reader sees a publish completely or not at all.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from parquetry.errors import DamagedCorpus, PublishConflict, SettingsError, StorageError, first_line
from parquetry.model import DocumentRow, Failure
from parquetry.storage.files.conditional_writes import probe, probe_without_race
from parquetry.storage.files.filesystem import check_can_be_made, check_folders_writable, filesystem_at, one_line_error
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import LATER, SCHEMA_VERSION, TABLES, Layout, Table, Version, file_name, layout_of
from parquetry.storage.lake.commits import commit, files_of, is_conflict, open_table
from parquetry.storage.lake.damaged_shards import is_whole
from parquetry.storage.lake.history import Publish, publishes
from parquetry.storage.lake.staging import clear_abandoned
from parquetry.storage.lake.table_files import Listed, TableFiles
from parquetry.storage.lake.table_state import follow, state_of
from parquetry.storage.lake.tables import is_table, make_table

if TYPE_CHECKING:
    import pyarrow as pa

    from parquetry.storage.lake.shards import Shard

Result = TypeVar("Result")
BESIDE: tuple[Table, ...] = ("texts", "chunks", "notes", "entries", "decisions")
"""tables that are written before a publish and have no effect without it"""
SEARCHED: tuple[Table, ...] = ("documents", "chunks")
"""tables that every search needs"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The corpus as of one version of `documents`: a fixed list of files to read."""

    layout: Layout
    version: int
    files: Mapping[Table, tuple[str, ...]]
    """absolute paths or URLs of the Parquet files of each table; looking up a damaged table raises an error"""

    @property
    def damaged(self) -> Mapping[Table, str]:
        """Damage of each table that cannot be read, in one line; empty unless the reader can do without some tables."""
        return self.files.damaged if isinstance(self.files, TableFiles) else {}

    def without(self, damaged: Mapping[Table, str]) -> Snapshot:
        """Return the snapshot without the given tables.

        Args:
            damaged: the damage of each, in one line.
        """
        files = self.files if isinstance(self.files, TableFiles) else TableFiles(self.files)
        return replace(self, files=files.without(damaged))


class Lake:
    """The tables at one root.

    Args:
        root: folder of the corpus, or its URL on an object store.
        create: True to open the corpus for writing; creates missing tables.
        at_once: True to create them now; False with the first commit, so that a run without results leaves none.
        single_writer: exactly one process writes to the corpus at a time, so that its store need not honour
            conditional writes.

    Raises:
        SettingsError: there is no corpus here (and `create` is False), a newer program wrote it, or it is opened for
            writing and its store does not honour conditional writes.
        StorageError: the corpus cannot be read, created or written to.
    """

    def __init__(self, root: str, *, create: bool = False, at_once: bool = True, single_writer: bool = False) -> None:
        self.layout = layout_of(root)
        self.single_writer = single_writer
        self._checked = self.layout.is_local
        self._lock = Lock()
        self._to_make = False
        """True if the tables are created with the first commit"""
        with _translated(f"corpus {self.layout.root} cannot be opened"):
            exists = self.exists(root)
            if exists:
                self._check_version()
            elif not create:
                raise SettingsError(
                    f"no corpus at {self.layout.root}; `parquetry refresh` makes one, --corpus names another"
                )
            if create:
                self._check_store(new=not exists)
                if self.layout.is_local:
                    clear_abandoned(self.layout)
                if not exists and not at_once:
                    self._to_make = True
                    if self.layout.is_local:
                        check_can_be_made(self.layout.root)
                    return
                self._create()
                if self.layout.is_local:
                    folders = [place(table) for table in TABLES for place in (self.layout.table, self.layout.log)]
                    check_folders_writable(self.layout.root, [self.layout.root, *folders])

    @staticmethod
    def exists(root: str) -> bool:
        """True if there is a corpus at a place."""
        with _translated(f"corpus {root} cannot be opened"):
            return is_table(layout_of(root), "documents")

    def _table(self, table: Table, version: int | None = None) -> DeltaTable:
        return open_table(self.layout, table, version)

    def _each(self, tables: Sequence[Table], work: Callable[[Table], Result]) -> list[Result]:
        """Run work for each table, concurrently on an object store, where it takes a few requests each."""
        if self.layout.is_local or len(tables) < 2:
            return [work(table) for table in tables]
        with ThreadPoolExecutor(len(tables)) as threads:
            return list(threads.map(work, tables))

    def _check_store(self, *, new: bool = False) -> None:
        """Refuse to write where two writers could overwrite each other's commits; tested once, before the first write.

        Args:
            new: True for a more thorough test, because the corpus is being created.
        """
        with self._lock:
            if self._checked:
                return
            found = (probe if new else probe_without_race)(self.layout)
            if found is not None and not (self.single_writer and found.single_writer_helps):
                raise SettingsError(f"corpus {self.layout.root}: {found.what}; {found.advice}")
            self._checked = True

    @property
    def is_made(self) -> bool:
        """True if the tables exist."""
        return not self._to_make or self.exists(self.layout.root)

    def make(self) -> None:
        """Create the tables of a new corpus now: before its first commit, or before other processes open it."""
        with self._lock:
            if self._to_make:
                self._create()
                self._to_make = False

    def _create(self) -> None:
        """Create the missing tables: all of a new corpus, or those unknown to an older program."""
        others = [table for table in TABLES if table != "documents"]
        self._each(others, lambda table: make_table(self.layout, table))
        make_table(self.layout, "documents")

    def _check_version(self) -> None:
        description = state_of(self.layout, "documents").description
        try:
            version = int(json.loads(description or "")["parquetry_schema"])
        except (TypeError, ValueError, KeyError) as error:
            raise SettingsError(
                f"{self.layout.root} holds a Delta table `documents` that is not a Parquetry corpus; "
                "choose another folder with --corpus"
            ) from error
        if version > SCHEMA_VERSION:
            raise SettingsError(
                f"corpus {self.layout.root} has schema {version}, newer than this program understands "
                f"({SCHEMA_VERSION}); install a newer Parquetry"
            )

    def snapshot(self, version: Version | None = None, *, needed: Sequence[Table] = TABLES) -> Snapshot:
        """Return the files of the corpus as of a version of `documents`.

        Args:
            version: version number as listed by `history`, or a tag; None for the newest.
            needed: tables that the reader cannot do without, `documents` among them. Any other table is opened when it
                is looked up; if its log is damaged, looking up its files fails. Writers need all tables.

        Raises:
            DamagedCorpus: the log of a needed table is damaged.
            SettingsError: there is no such version.
        """
        with _translated(f"corpus {self.layout.root} cannot be read"):
            if version is None and not self.is_made:
                # The state of the tables right after their creation.
                return Snapshot(self.layout, 0, dict.fromkeys(TABLES, ()))
            # `documents` is opened first: shards are registered before the rows that name them.
            number, files = self._documents(version)
            others = [table for table in needed if table != "documents"]
            found: dict[Table, Listed] = dict(zip(others, self._each(others, self._files_of), strict=True))
            return Snapshot(self.layout, number, TableFiles({**found, "documents": files}, self._found_later))

    def _found_later(self, tables: Sequence[Table]) -> list[Listed]:
        """Return the files of tables that a reader can do without."""
        with _translated(f"corpus {self.layout.root} cannot be read"):
            return self._each(tables, self._files_or_damage)

    def _files_or_damage(self, table: Table) -> Listed:
        try:
            return self._files_of(table)
        except (DamagedCorpus, DeltaError, OSError) as error:
            if isinstance(error, DamagedCorpus):
                return str(error)
            return f"the corpus is damaged: {self.layout.log(table)} cannot be read: {first_line(error)}"

    def _files_of(self, table: Table) -> tuple[str, ...]:
        try:
            return state_of(self.layout, table).files
        except TableNotFoundError:
            if table not in LATER:
                raise
            entries = filesystem_at(self.layout.root).entries(self.layout.table(table))
            if any(entry.name.endswith(".parquet") for entry in entries):
                raise DamagedCorpus(f"the corpus is damaged: {self.layout.log(table)} is missing or empty") from None
            # The corpus is older than this table.
            return ()

    def version_of(self, version: Version) -> int:
        """Return the number of a version that is kept.

        Args:
            version: its number, also as text, or one of its tags.

        Raises:
            SettingsError: there is no such version or tag, or the version is not kept any more.
            StorageError: this cannot be determined.
        """
        from parquetry.storage.lake.retention import number_of_version

        return number_of_version(self.layout, version, state_of(self.layout, "documents").version)

    def _documents(self, version: Version | None) -> tuple[int, tuple[str, ...]]:
        """Return the number of a version of `documents`, and its files."""
        if version is None:
            return (newest := state_of(self.layout, "documents")).version, newest.files
        number = self.version_of(version)
        files = files_of(self._table("documents", number))
        there = {entry.name for entry in filesystem_at(self.layout.root).entries(self.layout.table("documents"))}
        if any(file_name(file) not in there for file in files):
            raise SettingsError(
                f"version {number} of corpus {self.layout.root} cannot be read any more: something that it held was "
                "erased since (`parquetry forget`)"
            )
        return number, files

    def orphans(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the chunk shards that a crashed run left behind: complete files that no commit names.

        Their rows can never become visible, but their vectors were paid for and are found by text hash. A file
        truncated by a power failure is not a Parquet file and is left out.
        """
        from parquetry.storage.lake.replace_files import gave_way

        registered = {file_name(path) for path in snapshot.files["chunks"]}
        entries = filesystem_at(self.layout.root).entries(self.layout.table("chunks"))
        found = [entry.name for entry in entries if entry.name.endswith(".parquet") and entry.name not in registered]
        unnamed = [self.layout.shard("chunks", name) for name in found]
        # What a compaction replaced is in the files that it wrote.
        replaced = gave_way(self.layout, "chunks") if unnamed else set()
        return tuple(path for path in unnamed if file_name(path) not in replaced and is_whole(path))

    def register(self, shards: Sequence[Shard], run_id: str) -> None:
        """Add finished shards to their tables, one commit each; they stay invisible."""
        for table in BESIDE:
            members = [shard for shard in shards if shard.table == table and shard.rows]
            if members:
                self._append(table, members, run_id)

    def publish(
        self,
        base: Snapshot,
        rows: Collection[DocumentRow],
        run_id: str,
        before: Callable[[Mapping[str, int]], Sequence[Shard]] | None = None,
    ) -> int:
        """Make a run visible: commit its rows to `documents`.

        Args:
            base: the snapshot that the rows were planned from.
            rows: next rows of the changed documents; their sequence is set here.
            run_id: id of the run.
            before: writes what depends on the number of the publish: receives namespace -> sequence, and returns shards
                to register before the commit.

        Returns:
            The new version of `documents`; with no rows, the version of `base` and nothing is written.

        Raises:
            PublishConflict: another run has published to one of the namespaces since `base`.
            StorageError: the commit failed; nothing became visible.
        """
        from parquetry.storage.lake import shards

        if not rows:
            return base.version

        def parts(numbers: Mapping[str, int]) -> Iterable[pa.Table]:
            if before is not None:
                self.register(before(numbers), run_id)
            return shards.documents_in_parts(replace(row, sequence=numbers[row.namespace]) for row in rows)

        return self.publish_table(base, {row.namespace for row in rows}, parts, run_id)

    def publish_table(
        self,
        base: Snapshot,
        namespaces: Collection[str],
        rows: Callable[[Mapping[str, int]], Iterable[pa.Table]],
        run_id: str,
        switch: str | None = None,
    ) -> int:
        """As `publish`, with a function that returns the rows, and a Delta transaction that no other publish has."""
        from parquetry.storage.lake import shards

        self._check_store()
        with _translated(f"publishing to {self.layout.root} failed, nothing was published"):
            self.make()
            table = self._table("documents", base.version)
            keys = {namespace: f"ns:{namespace}" for namespace in sorted(namespaces)}
            sequences = {name: (table.transaction_version(key) or 0) + 1 for name, key in keys.items()}
            name = f"{run_id}-{time.time_ns():x}.parquet"
            shard = shards.write_shard_of_parts(self.layout, "documents", name, rows(sequences))
            changes = [Transaction(keys[name], number) for name, number in sequences.items()]
            changes += [Transaction(switch, 1)] if switch else []
            told_of = {"run_id": run_id, "rows": str(shard.rows)}
            try:
                made = commit(self.layout, "documents", [shard], told_of, transactions=changes, version=base.version)
            except CommitFailedError as error:
                if not is_conflict(error):
                    raise
                filesystem_at(self.layout.root).delete(self.layout.shard("documents", name))
                raise PublishConflict(f"another run published to {', '.join(keys)} meanwhile: {error}") from error
            follow(self.layout, "documents", made, [shard])
            return made

    def record(self, run: Mapping[str, Any], failures: Sequence[Failure]) -> None:
        """Append a run's row and its failed documents."""
        from parquetry.storage.lake import schema, shards

        run_id = str(run["run_id"])
        name = f"{run_id}-{time.time_ns():x}.parquet"
        self._check_store()
        with _translated(f"the run could not be recorded in {self.layout.root}; what it published stands"):
            if failures:
                rows = schema.failures_table(failures)
                self._append("failures", [shards.write_shard(self.layout, "failures", name, rows)], run_id)
            table = schema.RUNS.empty_table().from_pylist([dict(run)], schema=schema.RUNS)
            self._append("runs", [shards.write_shard(self.layout, "runs", name, table)], run_id)

    def record_searches(self, searches: Sequence[Mapping[str, Any]]) -> None:
        """Append answered searches, in one commit.

        Args:
            searches: rows of the table `searches`.

        Raises:
            StorageError: they could not be written.
        """
        from parquetry.storage.lake import schema, shards

        self._check_store()
        with _translated(f"searches could not be recorded in {self.layout.root}"):
            self._create()
            table = schema.SEARCHES.empty_table().from_pylist([dict(row) for row in searches], schema=schema.SEARCHES)
            name = f"searches-{time.time_ns():x}-{os.getpid():x}.parquet"
            self._append("searches", [shards.write_shard(self.layout, "searches", name, table)], None)

    def _append(self, table: Table, shards: Sequence[Shard], run_id: str | None) -> None:
        self._check_store()
        with _translated(f"writing to {self.layout.table(table)} failed, nothing was published"):
            self.make()
            version = commit(self.layout, table, shards, {"run_id": run_id} if run_id else {})
            follow(self.layout, table, version, shards)

    def history(self, limit: int | None = None) -> list[Publish]:
        """Return the publishes, newest first."""
        with _translated(f"corpus {self.layout.root} cannot be read"):
            return publishes(self.layout, self._table("documents"), limit)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Translate an error of the storage libraries into one line."""
    try:
        yield
    except (TableNotFoundError, DeltaError, OSError) as error:
        if (full := disk_full(error, "of the corpus", what)) is not None:
            raise full from error
        reason = error.strerror if isinstance(error, OSError) else None
        raise StorageError(f"{what}: {reason or one_line_error(error)}") from error
