"""Erase the data of a user: with the masking of secrets, the only operation that removes data from a corpus's files.

Files with rows of the user are rewritten without them, replaced in one commit for each table, and then deleted, along
with the answers of language models about the user's sessions and the search index. After a crash, running it again
finishes the work: rows of `documents` are removed before the texts that they name, and texts that no row names any more
are removed, too.
"""

from __future__ import annotations

import posixpath
import time
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from parquetry.errors import IndexNotWritten, PublishConflict
from parquetry.ids import owner_folder
from parquetry.model import SESSION_TYPE, DocumentRow
from parquetry.planning.rows import RunStamp, blank_row
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, reading, rows, sql_list, sql_string, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Table, entries_shard_name, holds_entries, run_of, shard_name
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake import schema
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.batches import BatchRecords
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.kept_versions import kept_documents
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.migrations import read_migrations
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.replace_files import gave_way, replace_files
from parquetry.storage.lake.retention import read_retention
from parquetry.storage.lake.shards import Shard, write_shard
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.maintenance.erased_rows import (
    ERASED,
    LEFT_ALONE,
    OWN_DOCUMENT,
    OWN_REVISIONS,
    OWN_TABLES,
    USER,
    Erased,
)
from parquetry.storage.maintenance.old_secrets import secret_steps
from parquetry.storage.replaced_files import reread

LONGEST_RUN = timedelta(days=1)
"""age up to which files of a run without a known end are kept, because the run may still be going on"""
_FILE = "file_of_row"
_REVISED: tuple[Table, ...] = ("texts", "chunks", "notes")


@dataclass
class Erasure:
    """The result of an erasure."""

    run_id: str
    version_before: int
    version: int
    """version of `documents`; earlier versions that contain a rewritten file can no longer be read"""
    rows: Counter[Table] = field(default_factory=Counter)
    """table -> number of rows that were deleted or had values erased"""
    files_rewritten: int = 0
    files_deleted: int = 0
    bytes_deleted: int = 0
    answers_deleted: int = 0
    index_error: str | None = None
    """reason why the search index could not be rebuilt, and what to do; None if it was rebuilt"""
    masked: list[str] = field(default_factory=list)
    """secrets masked in messages from before masking existed; one line per step"""
    files_left: int = 0
    """number of files of texts, chunks and notes that no row names, of runs that may be going on: their owner is not
    known yet"""


def forget_user(lake: Lake, user_id: str, stamp: RunStamp, search: SearchSettings) -> Erasure:
    """Erase the data that only a user may see, and all about the user's sessions, from all files of a corpus.

    Args:
        lake: the corpus, open for writing.
        user_id: id of the user.
        stamp: stamp of this run.
        search: gives the location of the search index.

    Raises:
        PublishConflict: other runs kept publishing; running again continues.
        DamagedCorpus: a file that would be rewritten does not hold what was written.
        StorageError: something could not be rewritten or deleted; running again continues.
    """
    started = time.perf_counter()
    eraser = _Eraser(lake, user_id, stamp)
    done = eraser.erase()
    for step in secret_steps(lake, search, stamp):
        step.do()
        done.masked.append(step.what)
    done.version = lake.snapshot().version
    if done.rows or done.files_deleted:
        _record(lake, done, stamp, eraser.namespaces, time.perf_counter() - started)
    if done.rows or done.files_deleted:
        IndexFolder(lake.layout, search).clear()
    try:
        reread(lambda: bring_index(lake.snapshot(), search))
    except IndexNotWritten as error:
        done.index_error = str(error)
    return done


class _Eraser:
    """One erasure: passes over the corpus until nothing is found."""

    def __init__(self, lake: Lake, user_id: str, stamp: RunStamp) -> None:
        self._lake, self._user, self._stamp = lake, user_id, stamp
        self._files = filesystem_at(lake.layout.root)
        self._revisions: set[int] = set()
        """revisions that rows of the user named"""
        self.namespaces: set[str] = set()
        """namespaces of the deleted rows of `documents`"""
        self._ended = _Ended(set(), stamp.at)
        version = lake.snapshot().version
        self._done = Erasure(stamp.run_id, version, version)

    def erase(self) -> Erasure:
        self._delete_answers()

        def rewrite(_: PublishConflict | None) -> None:
            if self._pass():
                raise PublishConflict("rows of the user were found; other runs may have published more meanwhile")

        publish_with_retry(rewrite, "run it again")
        self._sweep()
        self._done.version = self._lake.snapshot().version
        return self._done

    def _delete_answers(self) -> None:
        # First, so that no run stores an answer that a batch brings meanwhile.
        BatchRecords(self._lake.layout).forget(owner_folder(self._user))
        folder = Answers(self._lake.layout).folder(self._user)
        for entry in self._files.entries(folder):
            self._files.delete(posixpath.join(folder, entry.name))
            self._done.answers_deleted += 1
        if self._lake.layout.is_local and Path(folder).is_dir():
            Path(folder).rmdir()

    def _pass(self) -> bool:
        """Rewrite all files with rows of the user; False if there are none."""
        snapshot = self._lake.snapshot()
        found = False
        with self._connected(snapshot) as connection, reading():
            for statement in OWN_TABLES:
                connection.execute(statement)
            self._revisions |= {revision for (revision,) in tuples(connection, OWN_REVISIONS)}
            for table in (each for each in ERASED if each not in _REVISED):
                found |= self._rewrite(connection, snapshot, table)
            if not found:
                return self._rewrite_texts(connection, snapshot)
        # The state without the rows of the user: texts that are still named are kept.
        snapshot = self._lake.snapshot()
        with self._connected(snapshot) as connection, reading():
            self._rewrite_texts(connection, snapshot)
        return True

    def _rewrite_texts(self, connection: Connection, snapshot: Snapshot) -> bool:
        """Rewrite all files with texts that no row names."""
        self._ended = _Ended({run for (run,) in tuples(connection, "SELECT run_id FROM runs")}, self._stamp.at)
        found = False
        for table in _REVISED:
            self._collect_revisions(connection, snapshot, table)
            found |= self._rewrite(connection, snapshot, table)
        return found

    def _connected(self, snapshot: Snapshot) -> Connection:
        connection = connect_snapshot(snapshot)
        connection.execute(f"SET VARIABLE {USER} = {sql_string(self._user)}")
        return connection

    def _collect_revisions(self, connection: Connection, snapshot: Snapshot, table: Table) -> None:
        """Create the table of the revisions to delete from a table."""
        migration = read_migrations(self._lake.layout).active
        mask = migration.mask if migration else 0
        # Candidates of a migration that is being built stay with the revisions that they are of.
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE named_revisions AS SELECT DISTINCT revision FROM document_history
            UNION SELECT xor(revision, {mask}::BIGINT) FROM document_history"""
        )
        named = {revision for (revision,) in tuples(connection, "SELECT revision FROM named_revisions")}
        erased, left = self._revisions - named, set[str]()
        if snapshot.files[table]:
            held = tuples(
                connection,
                f"""SELECT DISTINCT {_FILE}, revision FROM {_scan(snapshot.files[table])}
                ANTI JOIN named_revisions USING (revision)""",
            )
            for file, revision in held:
                if revision in erased:
                    continue
                if self._ended(posixpath.basename(file)):
                    erased.add(revision)
                else:
                    left.add(file)
        self._done.files_left = len(left) if table == "texts" else self._done.files_left + len(left)
        connection.register("erased", pa.table({"revision": pa.array(sorted(erased), pa.int64())}))
        connection.execute("CREATE OR REPLACE TEMP TABLE erased_revisions AS SELECT * FROM erased")

    # --- rewriting

    def _rewrite(self, connection: Connection, snapshot: Snapshot, table: Table) -> bool:
        """Rewrite the files of a table with rows of the user, and replace the old ones."""
        erased = ERASED[table]
        if not snapshot.files[table]:
            return False
        found = tuples(
            connection,
            f"SELECT {_FILE}, count(*) FROM {_scan(snapshot.files[table])} WHERE {_any(erased)} GROUP BY ALL",
        )
        if not found:
            return False
        # Damaged rows would get a valid checksum of their own, and the damage could no longer be recognised.
        check_written(snapshot, table, [file for file, _ in found])
        written = [self._without(connection, table, erased, file) for file, _ in sorted(found)]
        shards = [shard for shard in written if shard is not None]
        if table == "documents":
            named = tuples(connection, f"SELECT DISTINCT namespace FROM document_history WHERE {OWN_DOCUMENT}")
            self.namespaces.update(namespace for (namespace,) in named)
            shards.extend(self._left_alone(connection))
        replace_files(
            self._lake.layout,
            table,
            [posixpath.basename(file) for file, _ in found],
            shards,
            self._stamp.run_id,
        )
        self._done.rows[table] += sum(count for _, count in found)
        self._done.files_rewritten += len(found)
        return True

    def _without(self, connection: Connection, table: Table, erased: Erased, file: str) -> Shard | None:
        """Rewrite one file without the erased data; None if no row remains."""
        values = (
            f"CASE WHEN {erased.blanked} THEN {value} ELSE {name} END AS {name}"
            for name, value in erased.values.items()
        )
        replaced = f"REPLACE ({', '.join(values)})" if erased.values else ""
        kept: pa.Table = connection.sql(
            f"SELECT * {replaced} FROM read_parquet({sql_string(file)}) WHERE NOT {erased.rows}"
        ).to_arrow_table()
        if not kept.num_rows:
            return None
        name_of = entries_shard_name if holds_entries(file) else shard_name
        # Named after this run: until the run ends, the file does not count as left behind.
        name = name_of(self._stamp.run_id, time.time_ns())
        return write_shard(self._lake.layout, table, name, kept.cast(schema.SCHEMAS[table]))

    def _left_alone(self, connection: Connection) -> Iterator[Shard]:
        """Yield a row without data for every publish that a decision needs and that has no other row left."""
        publishes = rows(connection, LEFT_ALONE)
        if publishes:
            blank = [_tombstone(**publish) for publish in publishes]
            name = f"{self._stamp.run_id}-{time.time_ns():x}.parquet"
            yield write_shard(self._lake.layout, "documents", name, schema.documents_table(blank))

    # --- deleting

    def _sweep(self) -> None:
        """Delete replaced files, and files of ended runs that no commit names."""
        snapshot = self._lake.snapshot()
        for table in ERASED:
            folder = self._lake.layout.table(table)
            named = {posixpath.basename(file) for file in snapshot.files[table]}
            left = gave_way(self._lake.layout, table) - named
            if table == "documents":
                named |= self._of_others(left)
            for entry in self._files.entries(folder):
                unnamed = not entry.is_folder and entry.name not in named
                if unnamed and (entry.name in left or self._ended(entry.name)):
                    self._files.delete(posixpath.join(folder, entry.name))
                    self._done.files_deleted += 1
                    self._done.bytes_deleted += entry.size

    def _of_others(self, left: Set[str]) -> set[str]:
        """Return the replaced files of `documents` from which a kept version is read, without rows of the user."""
        kept = left & kept_documents(self._lake, read_retention(self._lake.layout)) if left else left
        there = {entry.name for entry in self._files.entries(self._lake.layout.table("documents"))} & kept
        if not there:
            return set()
        files = [self._lake.layout.shard("documents", name) for name in sorted(there)]
        with self._connected(self._lake.snapshot()) as connection, reading():
            found = tuples(connection, f"SELECT DISTINCT {_FILE} FROM {_scan(files)} WHERE {OWN_DOCUMENT}")
        return there - {posixpath.basename(file) for (file,) in found}


@dataclass(frozen=True, slots=True)
class _Ended:
    """Recognise from the name of a file that the run that wrote it has ended."""

    known: set[str]
    """ids of the runs that left a record"""
    now: datetime

    def __call__(self, name: str) -> bool:
        run = run_of(name)
        if run is None:
            return False
        identity, began = run
        return identity in self.known or self.now - began > LONGEST_RUN


def _scan(files: Sequence[str]) -> str:
    return f"read_parquet({sql_list(files)}, filename = '{_FILE}')"


def _any(erased: Erased) -> str:
    return f"({erased.rows} OR {erased.blanked})"


def _tombstone(namespace: str, sequence: int, run_id: str) -> DocumentRow:
    """Return a tombstone without a document that only records the publish it belongs to."""
    row = blank_row(RunStamp(run_id, datetime.fromtimestamp(0, UTC)))
    return replace(
        row,
        document_id=f"erased-{run_id}",
        namespace=namespace,
        media_type=SESSION_TYPE,
        sequence=sequence,
        removed=True,
    )


def _record(lake: Lake, done: Erasure, stamp: RunStamp, namespaces: set[str], seconds: float) -> None:
    """Record that an erasure took place, without naming the user."""
    lake.record(
        {
            "run_id": done.run_id,
            "kind": "forget",
            "status": "completed",
            "started_at": stamp.at,
            "seconds": seconds,
            "namespaces": sorted(namespaces),
            "version_before": done.version_before,
            "version_after": done.version,
            "removed": done.rows["documents"],
        },
        [],
    )
