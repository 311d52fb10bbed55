"""An overview of a corpus: its content, its runs, and its files on disk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from posixpath import basename
from typing import Any

from parquetry.planning.compaction import SMALL_BYTES
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.files.filesystem import FileInfo, filesystem_at
from parquetry.storage.files.layout import TABLES, Table
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.batches import BatchRecords, OpenBatch
from parquetry.storage.lake.knowledge_views import IS_ENTRY
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot


@dataclass(frozen=True, slots=True)
class SourceState:
    """The documents of a source by status."""

    namespace: str
    source: str
    documents: int
    indexed: int
    failed: int
    skipped: int
    run_id: str
    """id of the run of the newest row"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The files of a Delta table."""

    table: Table
    files: int
    """number of Parquet files, including those that no version names any more"""
    bytes: int
    """bytes of these files"""
    small_files: int
    """number of files of the newest version that a compaction would write together"""
    unnamed_bytes: int
    """bytes of the files that the newest version does not name"""
    log_files: int
    """number of files of the log"""
    log_bytes: int
    """bytes of the log"""


@dataclass(frozen=True, slots=True)
class IndexSize:
    """The newest search index."""

    path: str
    version: int
    """version of the corpus"""
    bytes: int
    """bytes of all index files that are kept"""


@dataclass(frozen=True, slots=True)
class Overview:
    """A corpus at a glance."""

    version: int
    published_at: datetime
    """UTC"""
    sources: tuple[SourceState, ...]
    """sources of documents, by namespace and name; includes those that the settings no longer name"""
    entries: int
    """number of live entries from chat sessions"""
    failures: dict[str, int]
    """`stage/reason` -> number of documents not indexed because of it, most frequent first"""
    chunks_visible: int
    chunks_stored: int
    """includes chunks of replaced and removed documents, which earlier versions show"""
    runs: tuple[dict[str, Any], ...]
    """rows of the table `runs`, newest first"""
    tables: tuple[TableSize, ...]
    answers_bytes: int
    """bytes of the cached answers of language models"""
    index: IndexSize | None
    batches: tuple[OpenBatch, ...]
    """batches that are on their way at services"""


def overview_of(lake: Lake, settings: SearchSettings) -> Overview:
    """Return an overview of the newest version of a corpus; reads no texts and no vectors.

    Args:
        lake: the corpus.
        settings: give the location of the search index.

    Raises:
        StorageError: the corpus cannot be read.
    """
    snapshot = lake.snapshot()
    with connect_snapshot(snapshot) as connection:
        ((entries,),) = tuples(connection, f"SELECT count(*) FROM published WHERE {IS_ENTRY}")
        ((visible,),) = tuples(connection, "SELECT coalesce(sum(chunks), 0)::BIGINT FROM published WHERE revision <> 0")
        ((stored,),) = tuples(connection, "SELECT count(*) FROM all_chunks")
        return Overview(
            version=snapshot.version,
            published_at=lake.history(1)[0].at,
            sources=_sources(connection),
            entries=entries,
            failures=_failures(connection),
            chunks_visible=visible,
            chunks_stored=stored,
            runs=tuple(rows(connection, "SELECT * FROM runs ORDER BY started_at DESC, run_id DESC")),
            tables=tuple(_size(snapshot, table) for table in TABLES),
            answers_bytes=_bytes_below(snapshot, snapshot.layout.answers),
            index=_index(snapshot, settings),
            batches=tuple(BatchRecords(snapshot.layout).open()),
        )


def _sources(connection: Connection) -> tuple[SourceState, ...]:
    found = rows(
        connection,
        """SELECT namespace, source, count(*) AS documents, count(*) FILTER (status = 'indexed') AS indexed,
            count(*) FILTER (status = 'failed') AS failed, count(*) FILTER (status = 'skipped') AS skipped,
            arg_max(run_id, indexed_at) AS run_id
        FROM documents GROUP BY ALL ORDER BY ALL""",
    )
    return tuple(SourceState(**row) for row in found)


def _failures(connection: Connection) -> dict[str, int]:
    return dict(
        tuples(
            connection,
            """SELECT split_part(error, ': ', 1) AS reason, count(*) AS n FROM documents WHERE status <> 'indexed'
            GROUP BY reason ORDER BY n DESC, reason""",
        )
    )


def _size(snapshot: Snapshot, table: Table) -> TableSize:
    layout = snapshot.layout
    shards = [entry for entry in _entries(snapshot, layout.table(table)) if entry.name.endswith(".parquet")]
    log = _entries(snapshot, layout.log(table))
    named = {basename(file) for file in snapshot.files[table]}
    return TableSize(
        table,
        files=len(shards),
        bytes=sum(each.size for each in shards),
        small_files=sum(each.name in named and each.size < SMALL_BYTES for each in shards),
        unnamed_bytes=sum(each.size for each in shards if each.name not in named),
        log_files=len(log),
        log_bytes=sum(each.size for each in log),
    )


def _entries(snapshot: Snapshot, folder: str) -> list[FileInfo]:
    return filesystem_at(snapshot.layout.root).entries(folder)


def _bytes_below(snapshot: Snapshot, folder: str) -> int:
    """Return the bytes of a folder of small files and its subfolders."""
    found = _entries(snapshot, folder)
    inner = [f"{folder}/{entry.name}" for entry in found if entry.is_folder]
    return sum(entry.size for entry in found) + sum(_bytes_below(snapshot, each) for each in inner)


def _index(snapshot: Snapshot, settings: SearchSettings) -> IndexSize | None:
    folder = IndexFolder(snapshot.layout, settings)
    newest = folder.newest()
    if newest is None:
        return None
    size = sum(path.stat().st_size for path in folder.path.iterdir() if path.suffix == ".duckdb")
    return IndexSize(str(newest.path), newest.version, size)
