"""Compact a corpus: write small shards together, without rows that no kept version needs.

Each table is replaced in one commit, `documents` first. A row of texts, chunks or notes is dropped only if no row of
`documents` names its revision, in the newest version or in a kept one, and if the run that wrote it began before the
retention. What a killed compaction leaves is what it began with, or some tables compacted; running it again continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from posixpath import basename

import pyarrow as pa

from parquetry.errors import IndexNotWritten, PublishConflict, StorageError
from parquetry.planning.compaction import MANY_FILES, Group, ShardState, cutoff_of, groups
from parquetry.planning.rows import RunStamp
from parquetry.settings.retention import RetentionSettings
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, open_duckdb, reading, sql_list, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Table, compacted_shard_name, holds_entries, run_of
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake import schema
from parquetry.storage.lake.commits import checkpoint
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.kept_versions import horizon_snapshot, tagged_snapshots
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_KNOWLEDGE
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.migrations import read_migrations
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.replace_files import replace_files
from parquetry.storage.lake.retention import raise_horizon, read_retention
from parquetry.storage.lake.rewrite import run_row
from parquetry.storage.lake.shards import Shard, write_shard
from parquetry.storage.lake.snapshot_views import scan
from parquetry.storage.replaced_files import reread

_FILE = "file_of_row"
_BY_REVISION: tuple[Table, ...] = ("texts", "chunks", "notes")
_ORDERS: dict[Table, str] = {
    "documents": "namespace, source, path, document_id, sequence",
    "texts": "p.place, revision",
    "chunks": "p.place, revision, chunk_index",
    "notes": "p.place, revision, stage, note",
    "entries": "namespace, entry_id, sequence",
    "decisions": "namespace, sequence, number",
    "runs": "started_at, run_id",
    "failures": "run_id, namespace, source, uri",
    "searches": "searched_at",
}
"""table -> order of its rows, in the order in which the tables are compacted"""
_TEMPORARY = ("dropped", "needed", "places")
"""tables that are made for a table and would take memory during the next one"""
_DROPPED = f"""CREATE TEMP TABLE dropped AS
SELECT DISTINCT namespace, document_id, sequence FROM (
    SELECT namespace, document_id, sequence, run_id, removed, media_type,
        max(sequence) OVER (PARTITION BY namespace, document_id) AS newest
    FROM ({{horizon}})
) WHERE {IS_DOCUMENT} AND (sequence < newest OR removed)
    AND (namespace, sequence, run_id) NOT IN (SELECT (namespace, sequence, run_id) FROM ({{decisions}}))"""
"""Rows of documents that were superseded or removed at the horizon. Rows about sessions and entries stay, and those of
a publish with decisions: decisions count only if a row of their publish is there."""
_NEEDED = f"""CREATE TEMP TABLE needed AS
SELECT DISTINCT revision FROM ({{newest}}) UNION SELECT revision FROM ({{tagged}})
WHERE {IS_KNOWLEDGE} OR NOT removed
UNION SELECT xor(revision, {{mask}}) FROM ({{newest}}) WHERE {{mask}} <> 0"""
"""Candidates of a migration that is being built stay with the revisions that they are of."""
_PLACES = """CREATE TEMP TABLE places AS
SELECT revision, min((namespace, source, path)) AS place FROM ({newest}) GROUP BY revision"""


@dataclass
class Compaction:
    """The result of a compaction."""

    run_id: str
    version_before: int
    version: int
    """version of `documents` with the compacted files"""
    horizon: int
    """lowest version from which on all are kept"""
    files_before: dict[Table, int] = field(default_factory=dict)
    """number of the files that were written together, by table"""
    files_after: dict[Table, int] = field(default_factory=dict)
    """number of the files written in their place, by table"""
    rows_dropped: dict[Table, int] = field(default_factory=dict)
    """number of the rows that no kept version needed, by table"""
    index_error: str | None = None
    """reason why the search index could not be brought up to date, and what to do; None if it was"""

    @property
    def is_idle(self) -> bool:
        """True if there was nothing to do."""
        return not self.files_before


def compact(
    lake: Lake, retention: RetentionSettings, search: SearchSettings, stamp: RunStamp, least: int = 2
) -> Compaction:
    """Compact all tables of a corpus; readers and runs go on.

    Args:
        lake: the corpus, open for writing.
        retention: earlier versions that are kept.
        search: gives the location of the search index.
        stamp: stamp of this run; its time is the present.
        least: number of small files of a table from which on they are written together.

    Returns:
        The result; without anything to do, nothing is written.

    Raises:
        PublishConflict: other programs kept replacing files; nothing was lost, running again continues.
        DamagedCorpus: a file that would be written again does not hold what was written.
        StorageError: something could not be read or written; running again continues.
    """
    started = time.perf_counter()
    before = lake.snapshot().version
    with open_duckdb() as connection:
        filesystem_at(lake.layout.root).attach(connection)
        done = _compact_tables(connection, lake, retention, stamp, before, least)
    if done.is_idle:
        return done
    row = run_row("compact", before, done.version, [], stamp, time.perf_counter() - started)
    lake.record(row, [])
    for table in done.files_before:
        checkpoint(lake.layout, table)
    try:
        reread(lambda: bring_index(lake.snapshot(), search))
    except IndexNotWritten as error:
        done.index_error = str(error)
    return done


def _compact_tables(
    connection: Connection, lake: Lake, retention: RetentionSettings, stamp: RunStamp, before: int, least: int
) -> Compaction:
    horizon = horizon_snapshot(lake, retention, stamp.at)
    known = read_retention(lake.layout)
    done = Compaction(stamp.run_id, before, before, known.horizon)
    tagged = tagged_snapshots(lake, known, horizon.version)
    task = _Task(connection, lake, horizon, tagged, stamp, cutoff_of(retention, stamp.at))
    if not any(reread(_TableCompaction(task, table, _due_from(table, least)).is_due) for table in _ORDERS):
        return done
    kept = raise_horizon(lake.layout, horizon.version, stamp.at)
    done.horizon = kept.horizon
    task = replace(task, tagged=tagged_snapshots(lake, kept, kept.horizon))
    for table in _ORDERS:
        worker = _TableCompaction(task, table, least)
        worker.run()
        worker.report(done)
    return done


def _due_from(table: Table, least: int) -> int:
    """Return the number of small files of a table that is reason enough: a compaction itself adds one to `runs`."""
    return max(least, MANY_FILES) if table == "runs" else least


@dataclass(frozen=True, slots=True)
class _Task:
    """A compaction, for each of its tables."""

    connection: Connection
    """one for all tables: opening and closing it takes longer than reading small ones"""
    lake: Lake
    horizon: Snapshot
    """version from which on all are kept"""
    tagged: Sequence[Snapshot]
    """older versions that are kept"""
    stamp: RunStamp
    cutoff: datetime
    """time before which a run began whose rows may be dropped"""


class _TableCompaction:
    """The compaction of one table."""

    def __init__(self, task: _Task, table: Table, least: int) -> None:
        self._task, self._table, self._least = task, table, least
        self._lake, self._layout = task.lake, task.lake.layout
        self._written = 0
        self._replaced: list[ShardState] = []
        self._shards: list[Shard] = []
        self._version = 0
        """version of the table with the compacted shards"""

    def report(self, done: Compaction) -> None:
        """Add what was done to the result."""
        if self._replaced:
            done.files_before[self._table] = len(self._replaced)
            done.files_after[self._table] = len(self._shards)
            if self._table == "documents":
                done.version = self._version
        if dropped := sum(shard.dropped for shard in self._replaced):
            done.rows_dropped[self._table] = dropped

    def is_due(self) -> bool:
        """True if the table has shards to write together."""
        with self._connected() as (_, _, states):
            return bool(self._groups(states))

    def run(self) -> None:
        """Replace the shards of the table, or leave them as they are.

        Of `documents`, one is replaced in any case, unless another compaction was first: readers see a new version, and
        a restore that was decided before meets a conflict.

        Raises:
            PublishConflict: other programs kept replacing them; the table is unchanged.
        """

        def attempt(conflict: PublishConflict | None) -> None:
            reread(partial(self._replace, in_any_case=self._table == "documents" and conflict is None))

        publish_with_retry(attempt, f"{self._table} was not compacted; try again")

    def _replace(self, *, in_any_case: bool) -> None:
        with self._connected() as (connection, snapshot, states):
            planned = self._groups(states)
            if not planned and states and in_any_case:
                planned = [(replace(min(states, key=lambda shard: shard.size), dropped=0),)]
            if not planned:
                return
            replaced = [shard for group in planned for shard in group]
            names = [shard.name for shard in replaced]
            # Damaged rows would get a valid checksum of their own, and the damage could no longer be recognised.
            check_written(snapshot, self._table, [self._path(shard) for shard in replaced])
            shards = self._write(connection, planned, names)
        try:
            version = replace_files(self._layout, self._table, names, shards, self._task.stamp.run_id)
        except PublishConflict:
            if self._layout.is_local:
                self._delete(shards)
            raise
        self._replaced, self._shards, self._version = replaced, shards, version

    def _groups(self, states: Sequence[ShardState]) -> list[Group]:
        return groups(states, least=self._least, together=self._table == "documents")

    @contextmanager
    def _connected(self) -> Iterator[tuple[Connection, Snapshot, list[ShardState]]]:
        # Rows are dropped by what the newest version names, and shards are listed after it.
        snapshot, connection = self._lake.snapshot(), self._task.connection
        with reading():
            for name in _TEMPORARY:
                connection.execute(f"DROP TABLE IF EXISTS {name}")
            self._prepare(connection, snapshot)
            yield connection, snapshot, self._states(connection, snapshot)

    # --- what is needed

    def _prepare(self, connection: Connection, snapshot: Snapshot) -> None:
        newest = scan("documents", snapshot.files["documents"])
        if self._table == "documents":
            horizon = scan("documents", self._task.horizon.files["documents"])
            decisions = scan("decisions", snapshot.files["decisions"])
            connection.execute(_DROPPED.format(horizon=horizon, decisions=decisions))
        elif self._table in _BY_REVISION:
            current = (
                f"""SELECT * FROM ({scan("documents", version.files["documents"])})
                QUALIFY {IS_KNOWLEDGE} OR row_number() OVER
                    (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1"""
                for version in self._task.tagged
            )
            tagged = " UNION ALL ".join(current) or scan("documents", ())
            migration = read_migrations(self._layout).active
            mask = migration.mask if migration else 0
            connection.execute(_NEEDED.format(newest=newest, tagged=tagged, mask=f"{mask}::BIGINT"))
            connection.execute(_PLACES.format(newest=newest))

    def _states(self, connection: Connection, snapshot: Snapshot) -> list[ShardState]:
        folder = self._layout.table(self._table)
        sizes = {entry.name: entry.size for entry in filesystem_at(folder).entries(folder)}
        files = sorted(snapshot.files[self._table])
        if not files:
            return []
        kept = {"documents": "ANTI JOIN dropped USING (namespace, document_id, sequence)"}
        kept |= dict.fromkeys(_BY_REVISION, "SEMI JOIN needed USING (revision)")
        rows = f"read_parquet({sql_list(files)}, filename = '{_FILE}')"
        total = dict(tuples(connection, f"SELECT {_FILE}, count(*) FROM {rows} GROUP BY ALL"))
        held = total
        if self._table in kept:
            held = dict(tuples(connection, f"SELECT {_FILE}, count(*) FROM {rows} {kept[self._table]} GROUP BY ALL"))
        states = []
        for file in files:
            name = basename(file)
            dropped = total.get(file, 0) - held.get(file, 0) if self._may_drop(name) else 0
            entries = self._table in _BY_REVISION and holds_entries(name)
            states.append(ShardState(name, sizes.get(name, 0), total.get(file, 0), dropped, entries))
        return states

    def _may_drop(self, name: str) -> bool:
        """True if rows of a shard may be dropped: those of documents always, others once their run is long over.

        Rows that are registered and not yet named may belong to a run that goes on; later ones hold vectors that were
        paid for, and that another run finds.
        """
        if self._table == "documents":
            return True
        run = run_of(name)
        return run is not None and run[1] < self._task.cutoff

    # --- writing

    def _write(self, connection: Connection, planned: Sequence[Group], replaced: Sequence[str]) -> list[Shard]:
        shards: list[Shard] = []
        with ExitStack() as unfinished:
            # On a full disk, they would take the space of later writes.
            unfinished.callback(lambda: self._delete(shards))
            for group in planned:
                rows = self._rows(connection, group)
                expected = sum(shard.rows - shard.dropped for shard in group)
                if rows.num_rows != expected:
                    raise StorageError(
                        f"{self._table} was not compacted: {rows.num_rows} rows were read where {expected} are stored"
                    )
                if rows.num_rows:
                    self._written += 1
                    name = compacted_shard_name(self._task.stamp.run_id, self._written, entries=group[0].entries)
                    shards.append(write_shard(self._layout, self._table, name, rows, replaces=replaced))
            unfinished.pop_all()
        return shards

    def _rows(self, connection: Connection, group: Group) -> pa.Table:
        """Return the rows of a group that stay, in order."""
        thinned = [self._path(shard) for shard in group if shard.dropped]
        whole = [self._path(shard) for shard in group if not shard.dropped]
        parts = [f"({scan(self._table, files)})" for files in (whole, thinned)]
        if self._table == "documents":
            kept = "ANTI JOIN dropped USING (namespace, document_id, sequence)"
        else:
            kept = "SEMI JOIN needed USING (revision)" if self._table in _BY_REVISION else ""
        joined = f"SELECT * FROM {parts[0]} UNION ALL BY NAME SELECT * FROM {parts[1]} {kept}"
        columns = ", ".join(f'r."{name}"' for name in schema.SCHEMAS[self._table].names)
        places = "LEFT JOIN places AS p USING (revision)" if self._table in _BY_REVISION else ""
        found: pa.Table = connection.sql(
            f"SELECT {columns} FROM ({joined}) AS r {places} ORDER BY {_ORDERS[self._table]}"
        ).to_arrow_table()
        return found.cast(schema.SCHEMAS[self._table])

    def _path(self, shard: ShardState) -> str:
        return self._layout.shard(self._table, shard.name)

    def _delete(self, shards: Sequence[Shard]) -> None:
        """Delete shards that no commit names."""
        for shard in shards:
            filesystem_at(self._layout.root).delete(self._layout.shard(shard.table, shard.name))
