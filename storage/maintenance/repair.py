"""Repair a damaged corpus: replace damaged files by data from the index and from shards that no commit names.

The plan is made table by table, because each step reads what earlier steps have repaired. A step is announced before it
is carried out. Data that no step can restore is named, with its possible source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from posixpath import basename

import pyarrow as pa
import pyarrow.parquet as pq

from parquetry import ids
from parquetry.model import Part
from parquetry.planning.rows import RunStamp, removed_row
from parquetry.plural import counted
from parquetry.sessions.ledger.undo import rewritten
from parquetry.sessions.model import Decision
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection, each_row, open_duckdb, reading, sql_list, tuples
from parquetry.storage.entries.entries import last_rows
from parquetry.storage.entries.entry_checks import OTHERWISE
from parquetry.storage.files.filesystem import filesystem_at, last_folder, sha256_of
from parquetry.storage.files.layout import Table, entries_shard_name, layout_of, shard_name
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import spaces_of
from parquetry.storage.lake import schema
from parquetry.storage.lake.commits import open_table
from parquetry.storage.lake.damaged_shards import faulty_columns, is_whole
from parquetry.storage.lake.file_faults import unusable_files
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_ENTRY
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.ledger import write_decisions
from parquetry.storage.lake.replace_files import replace_files
from parquetry.storage.lake.rewrite import run_row
from parquetry.storage.lake.shards import Shard, StoredText, structure_json, write_shard
from parquetry.storage.lake.snapshot_views import connect_snapshot, scan
from parquetry.storage.maintenance.old_secrets import secret_steps
from parquetry.storage.maintenance.repair_log import Step, log_steps, named_documents
from parquetry.storage.maintenance.salvage import Salvage, salvaged

_ORDER: tuple[Table, ...] = (
    *("documents", "chunks", "texts", "entries"),
    *("notes", "decisions", "runs", "failures", "searches"),
)
"""`documents` holds the current rows, `chunks` the texts of entries"""
_REVISED: frozenset[Table] = frozenset({"chunks", "texts"})
_OWN: Mapping[Table, str] = {
    "decisions": "how entries were decided on, which only a backup has; what is known stays",
    "notes": "notes on documents, which `parquetry reindex` makes again",
    "searches": "records of searches, which only a backup has",
}
"""table -> loss with a shard of it"""
_INDEXED: Mapping[Table, str] = {
    "documents": "what was published with {}: `parquetry refresh` and `sessions refresh` bring back what sources hold",
    "runs": "records of runs, which only a backup has ({})",
    "failures": "records of what failed, which only a backup has ({})",
}
"""table -> loss with shards that no index knows"""
_HAS_TEXT = f"revision <> 0 AND ({IS_DOCUMENT} OR {IS_ENTRY})"
_LACKING: Mapping[Table, str] = {
    "chunks": f"""SELECT revision FROM published
        LEFT JOIN (SELECT revision, count(*) AS n FROM held_chunks GROUP BY revision) USING (revision)
        WHERE {_HAS_TEXT} AND coalesce(n, 0) <> chunks""",
    "texts": f"SELECT revision FROM published ANTI JOIN held_texts USING (revision) WHERE {_HAS_TEXT}",
}
"""table -> the current revisions with missing rows in it"""
_VIEWS = (
    *(f"CREATE OR REPLACE TEMP VIEW held_{table} AS {{{table}}}" for table in _ORDER),
    """CREATE OR REPLACE TEMP VIEW held_current AS SELECT * FROM held_documents
    QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1""",
    "CREATE OR REPLACE TEMP VIEW published AS SELECT * FROM held_current WHERE NOT removed",
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Recovered rows."""

    name: str
    """name of the shard that they are written to"""
    rows: pa.Table
    source: str
    """origin of the rows"""


def repair(root: str, settings: SearchSettings, stamp: RunStamp, *, single_writer: bool = False) -> Iterator[Step]:
    """Yield the steps that repair a corpus; carry out each before requesting the next.

    Args:
        root: root of the corpus.
        settings: give the location of the search index.
        stamp: stamp of this run.
        single_writer: as in `Lake`.

    Raises:
        SettingsError: a file stands at the path of the corpus.
        StorageError: something that nothing can replace is unreadable.
        PublishConflict: another run changed a table meanwhile; run it again.
    """
    layout = layout_of(root)
    if layout.is_local:
        last_folder(layout.root)
    named = named_documents(layout) if layout.is_local else set()
    with salvaged(layout, settings, named) as salvage:
        if layout.is_local:
            yield from log_steps(layout, salvage)
        lake = Lake(root, single_writer=single_writer)
        before, started, mended = lake.snapshot().version, time.perf_counter(), False
        mender = _Mender(lake, salvage, stamp)
        for table in _ORDER:
            for step in mender.steps(table):
                mended = True
                yield step
    for step in chain(_standing_steps(lake, stamp), secret_steps(lake, settings, stamp)):
        mended = True
        yield step
    if mended:
        lake.record(run_row("repair", before, lake.snapshot().version, [], stamp, time.perf_counter() - started), [])
    yield from _index_steps(lake.snapshot(), settings)


def documents_lacking(lake: Lake) -> dict[tuple[str, str], list[str]]:
    """Return the documents without their text, or with missing chunks: their sources may still have them.

    Returns:
        (namespace, source) -> ids.
    """
    with connect_snapshot(lake.snapshot()) as connection:
        found = tuples(
            connection,
            f"""SELECT namespace, source, list(document_id ORDER BY path) FROM published
            LEFT JOIN (SELECT revision, count(*) AS n FROM all_chunks GROUP BY revision) USING (revision)
            WHERE revision <> 0 AND {IS_DOCUMENT}
                AND (coalesce(n, 0) <> chunks OR revision NOT IN (SELECT revision FROM all_texts))
            GROUP BY ALL ORDER BY ALL""",
        )
    return {(namespace, source): documents for namespace, source, documents in found}


def _standing_steps(lake: Lake, stamp: RunStamp) -> Iterator[Step]:
    """Keep the published state of entries although decisions are lost: record it in a decision of this run."""
    snapshot = lake.snapshot()
    with connect_snapshot(snapshot) as connection:
        found = tuples(connection, f"SELECT namespace, entry_id, live FROM ({OTHERWISE}) ORDER BY ALL")
        for namespace in sorted({namespace for namespace, _, _ in found}):
            adds = tuple(entry for space, entry, live in found if space == namespace and live)
            retires = tuple(entry for space, entry, live in found if space == namespace and not live)
            known = last_rows(connection, namespace, (*adds, *retires))
            rows = [replace(row, run_id=stamp.run_id, indexed_at=stamp.at) for row in known.values()]
            decision = rewritten(namespace, adds, retires, "repair", stamp)

            def before(sequences: Mapping[str, int], decision: Decision = decision) -> list[Shard]:
                name = f"{stamp.run_id}-{time.time_ns():x}.parquet"
                return [write_decisions(lake.layout, name, [decision], sequences, snapshot.version)]

            count = counted(len(rows), "entry is", "entries are")
            yield Step(
                f"put on record that {count} known or not, of {namespace}, as is published",
                partial(lake.publish, snapshot, rows, stamp.run_id, before),
            )


def _index_steps(snapshot: Snapshot, settings: SearchSettings) -> Iterator[Step]:
    folder = IndexFolder(snapshot.layout, settings)
    version, found = disagreements(snapshot, settings)

    def build() -> None:
        folder.clear()
        folder.refresh(snapshot)

    if found:
        yield Step(f"build the search index again: {found[0].what}", build)
    elif version is not None and version > snapshot.version:
        yield Step(f"build the search index again, which is of version {version}", build)
    elif version is not None and version != snapshot.version:
        yield Step("bring the search index up to date", partial(folder.refresh, snapshot))


class _Mender:
    """Replace the unusable shards of a table by copies of their rows from elsewhere."""

    def __init__(self, lake: Lake, salvage: Salvage | None, stamp: RunStamp) -> None:
        self._lake = lake
        self._layout = lake.layout
        self._salvage = salvage
        self._stamp = stamp
        self._bad = unusable_files(lake.snapshot())
        self._written = 0

    def steps(self, table: Table) -> Iterator[Step]:
        """Yield at most one step."""
        snapshot = self._lake.snapshot()
        gone = [file for file in snapshot.files[table] if file in self._bad]
        joining: list[Shard] = []
        with self._connected(snapshot) as connection:
            if table in _REVISED:
                connection.execute(f"CREATE OR REPLACE TEMP TABLE lacking AS {_LACKING[table]}")
                joining = list(self._unnamed(connection, snapshot, table))
            made = [each for each in self._made(connection, table, gone) if each.rows.num_rows]
        if gone or joining or made:
            told = _told(table, gone, joining, made)
            yield Step(told, partial(self._replace, table, gone, joining, made), self._lost(table, gone))

    def _replace(self, table: Table, gone: Sequence[str], joining: Sequence[Shard], made: Sequence[_Rows]) -> None:
        shards = [*joining, *(write_shard(self._layout, table, each.name, each.rows) for each in made)]
        replace_files(self._layout, table, [basename(file) for file in gone], shards, self._stamp.run_id)
        for file in gone:
            filesystem_at(self._layout.root).delete(file)

    def _lost(self, table: Table, gone: Sequence[str]) -> str:
        known = self._salvage.files.get(table, frozenset()) if self._salvage else frozenset()
        names = ", ".join(basename(file) for file in gone)
        if gone and table in _OWN:
            return f"{_OWN[table]} ({names})"
        unknown = any(basename(file) not in known for file in gone)
        return _INDEXED[table].format(names) if unknown and table in _INDEXED else ""

    @contextmanager
    def _connected(self, snapshot: Snapshot) -> Iterator[Connection]:
        """Open a connection with views of the usable shards, beside the tables of the index if there is one."""
        readable = {table: tuple(file for file in snapshot.files[table] if file not in self._bad) for table in _ORDER}
        connection = self._salvage.connection.cursor() if self._salvage else open_duckdb()
        with connection, reading():
            if self._salvage:
                connection.execute("USE ix")
            filesystem_at(self._layout.root).attach(connection)
            for view in _VIEWS:
                connection.execute(view.format_map({t: scan(t, files) for t, files in readable.items()}))
            yield connection

    def _unnamed(self, connection: Connection, snapshot: Snapshot, table: Table) -> Iterator[Shard]:
        """Yield complete shards that no commit names and that contain missing revisions."""
        named = {basename(file) for file in snapshot.files[table]}
        for entry in filesystem_at(self._layout.root).entries(self._layout.table(table)):
            if not entry.name.endswith(".parquet") or entry.name in named:
                continue
            path = self._layout.shard(table, entry.name)
            if not is_whole(path) or faulty_columns(path):
                continue
            found = f"SELECT DISTINCT revision FROM read_parquet({sql_list([path])}) SEMI JOIN lacking USING (revision)"
            if not (revisions := tuples(connection, found)):
                continue
            _take(connection, [revision for (revision,) in revisions])
            with filesystem_at(path).open(path) as stream:
                yield Shard(table, entry.name, entry.size, pq.read_metadata(stream).num_rows, sha256_of(path))

    def _made(self, connection: Connection, table: Table, gone: Sequence[str]) -> Iterator[_Rows]:
        """Yield the rows that can be recovered elsewhere."""
        if table == "documents":
            if gone and self._salvage:
                yield self._documents(connection, self._salvage)
        elif table == "chunks":
            if self._salvage:
                yield from self._chunks(connection)
            yield self._chunks_of_entries(connection)
        elif table == "texts":
            yield self._texts_of_entries(connection)
        elif not gone:
            return
        elif table == "entries":
            yield self._entries(connection)
        elif table in ("runs", "failures") and self._salvage:
            columns = ", ".join(f'"{name}"' for name in schema.SCHEMAS[table].names)
            held = f"SELECT {columns} FROM parts.{table} ANTI JOIN held_{table} USING (run_id)"
            yield self._rows(table, connection.sql(held).to_arrow_table(), "the search index")

    def _rows(self, table: Table, rows: pa.Table, source: str, *, entries: bool = False) -> _Rows:
        self._written += 1
        name = (entries_shard_name if entries else shard_name)(self._stamp.run_id, self._written)
        return _Rows(name, rows.cast(schema.SCHEMAS[table]), source)

    def _documents(self, connection: Connection, salvage: Salvage) -> _Rows:
        """Return current rows that only the index has, and tombstones for documents that it no longer has."""
        made = schema.DocumentRows()
        columns = ", ".join(f'd."{name}"' for name in schema.DOCUMENTS.names)
        back = each_row(
            connection,
            f"""SELECT {columns} FROM parts.documents AS d LEFT JOIN held_current AS h USING (namespace, document_id)
            WHERE h.sequence IS NULL OR h.sequence < d.sequence ORDER BY ALL""",
        )
        rows = [made.row(values) for values in back]
        known = [self._layout.shard("documents", name) for name in sorted(salvage.files["documents"])]
        older = [file for file in known if file not in self._bad and is_whole(file)]
        ghosts = each_row(
            connection,
            f"""SELECT p.* FROM published AS p SEMI JOIN ({scan("documents", older)}) AS o
                USING (namespace, document_id, sequence)
            ANTI JOIN parts.documents USING (namespace, document_id) ORDER BY ALL""",
        )
        newest = open_table(self._layout, "documents")
        for values in ghosts:
            row = made.row(values)
            number = newest.transaction_version(f"ns:{row.namespace}") or 0
            if number > row.sequence:
                gone = removed_row(row, self._stamp, "repair/removed: its tombstone was in a damaged shard")
                rows.append(replace(gone, sequence=number))
        return self._rows("documents", schema.documents_table(rows), "the search index")

    def _chunks(self, connection: Connection) -> Iterator[_Rows]:
        spaces = spaces_of(connection)
        vectors = ", ".join(f"c.vector_{space.number}::FLOAT[]" for space in spaces)
        columns = ", ".join(f'c."{name}"' for name in schema.CHUNKS.names if name != "vector")
        for entries in (False, True):
            kind = IS_ENTRY if entries else f"NOT {IS_ENTRY}"
            found = connection.sql(
                f"""SELECT {columns}, {f"coalesce({vectors})" if spaces else "NULL::FLOAT[]"} AS vector
                FROM parts.chunks AS c SEMI JOIN lacking USING (revision) SEMI JOIN parts.documents USING (doc)
                SEMI JOIN (SELECT revision FROM published WHERE {kind}) USING (revision)
                ORDER BY c.revision, c.chunk_index"""
            ).to_arrow_table()
            _take(connection, found["revision"].unique().to_pylist())
            yield self._rows("chunks", found, "the search index", entries=entries)

    def _chunks_of_entries(self, connection: Connection) -> _Rows:
        """Return chunks of entries: the text of an entry is its only chunk."""
        found = connection.sql(
            f"""SELECT t.revision, 0 AS chunk_index, 0 AS start, length(t.text) AS "end", 'document' AS kind,
                NULL AS page, []::VARCHAR[] AS headings, t.text, p.tokens, t.embedder, t.vector
            FROM held_texts AS t SEMI JOIN lacking USING (revision)
            JOIN (SELECT revision, tokens FROM published WHERE {IS_ENTRY}) AS p USING (revision) ORDER BY ALL"""
        ).to_arrow_table()
        hashes = [ids.text_hash(text) for text in found["text"].to_pylist()]
        rows = found.append_column("text_hash", pa.array(hashes, pa.string())).select(schema.CHUNKS.names)
        return self._rows("chunks", rows, "their texts", entries=True)

    def _texts_of_entries(self, connection: Connection) -> _Rows:
        """Return texts of entries: the only chunk of an entry is its text."""
        found = connection.sql(
            f"""SELECT c.revision, c.text, c.embedder, c.vector FROM held_chunks AS c SEMI JOIN lacking USING (revision)
            SEMI JOIN (SELECT revision FROM published WHERE {IS_ENTRY}) USING (revision) ORDER BY ALL"""
        ).to_arrow_table()
        texts = [
            structure_json(StoredText(0, text, (Part(0, len(text), "document", 1, None, "text"),), ()))
            for text in found["text"].to_pylist()
        ]
        rows = found.append_column("structure", pa.array(texts, pa.string())).select(schema.TEXTS.names)
        return self._rows("texts", rows, "their chunks", entries=True)

    def _entries(self, connection: Connection) -> _Rows:
        told = "json_extract_string(p.metadata, '$.{}')"
        found = connection.sql(
            f"""SELECT p.document_id AS entry_id, p.namespace, p.sequence, p.run_id, p.revision,
                {told.format("kind")} AS kind, c.text, p.visibility, p.org_id, p.user_id,
                {told.format("confidence")}::DOUBLE AS confidence,
                {told.format("valid_from")}::TIMESTAMPTZ AS valid_from, p.created_at, NULL::VARCHAR AS decision_id
            FROM (SELECT * FROM published WHERE {IS_ENTRY}) AS p
            ANTI JOIN held_entries AS e ON e.namespace = p.namespace AND e.entry_id = p.document_id
            JOIN held_chunks AS c ON c.revision = p.revision ORDER BY ALL"""
        )
        return self._rows("entries", found.to_arrow_table(), "their chunks")


def _take(connection: Connection, revisions: Sequence[int]) -> None:
    """Remove revisions from the list of missing ones."""
    connection.execute("DELETE FROM lacking WHERE revision IN (SELECT unnest($1::BIGINT[]))", [revisions])


def _told(table: Table, gone: Sequence[str], joining: Sequence[Shard], made: Sequence[_Rows]) -> str:
    parts = []
    if gone:
        names = ", ".join(map(basename, gone[:3])) + (", ..." if len(gone) > 3 else "")
        parts.append(f"drop {counted(len(gone), 'shard')} of {table} that cannot be used ({names})")
    if joining:
        parts.append(f"take in {counted(len(joining), 'shard')} of {table} that no commit names")
    for source in dict.fromkeys(each.source for each in made):
        count = sum(each.rows.num_rows for each in made if each.source == source)
        parts.append(f"take back {counted(count, 'row')} of {table} from {source}")
    return "; ".join(parts)
