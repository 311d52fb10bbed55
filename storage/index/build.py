"""Fill the tables of the search index from a snapshot of the lake, and update them to another version.

All tables are in the schema `parts`, or in `segment` if their rows are divided among files (`segments`). Chunks and
postings are only ever appended: rows that a publish replaced are listed in `parts.dead` and left out of every answer
until `needs_rebuild` requires a rebuild. A refresh therefore costs what the publish changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import duckdb

from parquetry.errors import DamagedCorpus
from parquetry.language.stems import stop_words
from parquetry.plural import counted
from parquetry.storage.database import Connection, sql_list, transaction, tuples
from parquetry.storage.files.layout import TABLES, Table, file_name
from parquetry.storage.index import segments
from parquetry.storage.index.codes import add_codes, make_codes
from parquetry.storage.index.identities import add_identities, keep_numbers, note_numbers
from parquetry.storage.index.remembered import marks_of, note_checked, note_texts
from parquetry.storage.index.tokens import MACROS
from parquetry.storage.index.words import count_of, count_words, learn_words
from parquetry.storage.lake.damage import check_written, next_commit
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.lineage import replaced_by
from parquetry.storage.lake.snapshot_views import scan

FORMAT = 11
"""incremented when an older program misreads the file, or wrote a wrong one; an index of another format is rebuilt"""

_TABLES = (
    "CREATE SCHEMA parts",
    "CREATE TABLE parts.meta (key VARCHAR, value VARCHAR)",
    "CREATE TABLE parts.spaces (space INTEGER, embedder VARCHAR, dimension INTEGER)",
    "CREATE TABLE parts.revisions (doc INTEGER, revision BIGINT, space INTEGER, chunks INTEGER, length BIGINT)",
    "CREATE TABLE parts.dead (doc INTEGER, chunks INTEGER)",
    "CREATE TABLE parts.identities (term INTEGER, document INTEGER, weight FLOAT)",
    "CREATE TABLE parts.terms (term INTEGER, stem VARCHAR)",
    # Every search looks up a few stems among hundreds of thousands.
    "CREATE INDEX stems ON parts.terms (stem)",
    "CREATE TABLE parts.words (word VARCHAR, term INTEGER, stop BOOLEAN)",
)
_CHUNK_COLUMNS = 'revision, chunk_index, start, "end", kind, page, headings, text, tokens, text_hash, embedder'
_COPIED: tuple[Table, ...] = ("runs", "failures")
_REVISIONS = 100_000
"""revisions that are counted at a time, so that any number of them is counted in as little memory"""
_UNREADABLE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
"""errors of a damaged or missing shard"""


MemoryOf = Callable[[int, int], str]
"""returns memory for a number of chunks with a number of characters, as DuckDB writes it"""


class UnfitIndex(ValueError):
    """An index that is better built again than updated."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state recorded in an index."""

    format: int
    version: int
    """version of the corpus"""
    language: str
    files: Mapping[Table, Sequence[str]]
    """names of the indexed Parquet files of each table"""


def create_tables(connection: Connection, language: str) -> None:
    """Create the tables of an empty index in the current database of a connection."""
    with transaction(connection):
        _create_tables(connection, language)


def _create_tables(connection: Connection, language: str) -> None:
    for statement in (*_TABLES, *segments.TABLES, *MACROS):
        connection.execute(statement)
    columns = {name: _columns(name) for name in ("documents", *_COPIED)}
    connection.execute(f"CREATE TABLE parts.documents ({columns['documents']}, doc INTEGER, number INTEGER)")
    for table in _COPIED:
        connection.execute(f"CREATE TABLE parts.{table} ({columns[table]})")
    _write_state(connection, IndexState(FORMAT, -1, language, {}))
    # Stored from the start, so that a query can recognise its stop words even if no text holds them.
    learn_words(connection, sorted(stop_words(language)), language)
    segments.join_segments(connection)


def read_state(connection: Connection) -> IndexState:
    """Read the state recorded in the index of the current database."""
    values = dict(tuples(connection, "SELECT key, value FROM parts.meta"))
    files = json.loads(values["files"])
    return IndexState(int(values["format"]), int(values["version"]), values["language"], files)


def advance(connection: Connection, snapshot: Snapshot, memory: MemoryOf | None = None) -> dict[Table, str]:
    """Update the index in the current database to a version of the corpus, from whichever version it has.

    Args:
        connection: connection with the index as current database, open for writing.
        snapshot: snapshot of the lake.
        memory: memory of DuckDB for the chunks that are new; rows of many chunks wait in files. None to leave it as it
            is, with all rows in tables.

    Returns:
        The damage of each table that a search does not need and that was therefore left unchanged.

    Raises:
        DamagedCorpus: a file that a search needs does not hold what was written, or chunks are missing.
    """
    state = read_state(connection)
    damaged = {table: wrong for table in _COPIED if (wrong := _damage(snapshot, state, table)) is not None}
    with transaction(connection):
        _documents(connection, snapshot, state, memory)
        _retire(connection)
        _check_models(connection)
        _wanted(connection)
        first = segments.next_chunk(connection)
        spaces = _spaces(connection)
        for space, dimension in spaces:
            _chunks(connection, snapshot, state, space, dimension)
    # What has been added goes to disk before more is kept in memory. Slices commit in between: nobody else sees the
    # index before it is whole, and half an index is thrown away.
    with transaction(connection):
        _check_complete(connection, snapshot, first)
        end = segments.next_chunk(connection)
        for space, _ in spaces:
            add_codes(connection, space, first, end)
        count_words(connection, first, end, state.language, may_spill=memory is not None)
        add_identities(connection, state.language, may_spill=memory is not None)
        _revisions(connection, first)
        files: dict[Table, Sequence[str]] = {}
        for table in (each for each in TABLES if each not in snapshot.damaged):
            files[table] = [file_name(file) for file in snapshot.files[table]]
        for table in _COPIED:
            if table in damaged:
                files[table] = state.files.get(table, ())
            else:
                _copy(connection, snapshot, state, table)
        _write_state(connection, IndexState(FORMAT, snapshot.version, state.language, files))
    with suppress(*_UNREADABLE), transaction(connection):
        # Shards that are not remembered are read by those who look for a text, and tell what is wrong.
        note_texts(connection, snapshot)
    return damaged


def _columns(table: str) -> str:
    from parquetry.storage.lake import schema

    fields = schema.SCHEMAS[table]  # type: ignore[index]
    return ", ".join(f'"{field.name}" {schema.DUCKDB_TYPES[field.type]}' for field in fields)


def _columns_of(connection: Connection, table: str) -> set[str]:
    """Return the names of the columns that a table has."""
    return {name for (name,) in tuples(connection, f"SELECT column_name FROM (DESCRIBE {table})")}


def _write_state(connection: Connection, state: IndexState) -> None:
    values = {
        "format": str(state.format),
        "version": str(state.version),
        "language": state.language,
        "files": json.dumps(state.files),
    }
    connection.execute("DELETE FROM parts.meta WHERE key IN ('format', 'version', 'language', 'files')")
    connection.execute(
        "INSERT INTO parts.meta SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[])",
        [list(values), list(values.values())],
    )


# --- documents and revisions


def _documents(connection: Connection, snapshot: Snapshot, state: IndexState, memory: MemoryOf | None) -> None:
    """Replace the rows of the changed documents."""
    fresh, additive = _fresh_files(snapshot, state, "documents")
    marks = marks_of(snapshot.layout)
    check_written(snapshot, "documents", fresh)
    note_checked(connection, snapshot, fresh, marks)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE incoming AS SELECT * FROM {_scan('documents', fresh)}")
    if memory is not None:
        amounts = tuples(connection, "SELECT coalesce(sum(chunks), 0), coalesce(sum(characters), 0) FROM incoming")
        connection.execute(f"SET memory_limit = '{memory(*amounts[0])}'")
    note_numbers(connection, "incoming" if additive else "parts.documents")
    if not additive:
        connection.execute("DELETE FROM parts.documents")
    # A later sequence of a document may be in another new file, or already indexed. The keys alone are sorted: rows are
    # wide, and those of a new index many.
    connection.execute(
        """DELETE FROM incoming WHERE rowid IN (
            SELECT rowid FROM (SELECT rowid, namespace, document_id, sequence FROM incoming)
            QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) > 1
        )"""
    )
    connection.execute(
        """DELETE FROM incoming USING parts.documents AS d
        WHERE incoming.namespace = d.namespace AND incoming.document_id = d.document_id
            AND incoming.sequence < d.sequence"""
    )
    connection.execute(
        """DELETE FROM parts.documents USING incoming
        WHERE parts.documents.namespace = incoming.namespace AND parts.documents.document_id = incoming.document_id"""
    )
    connection.execute(
        """INSERT INTO parts.documents BY NAME
        SELECT i.*, r.doc FROM incoming AS i LEFT JOIN parts.revisions AS r USING (revision) WHERE NOT i.removed"""
    )
    keep_numbers(connection)


def _retire(connection: Connection) -> None:
    """Mark the revisions that no document has any more as dead."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE retired AS
        SELECT doc, chunks FROM parts.revisions ANTI JOIN parts.documents USING (revision)"""
    )
    if not count_of(connection, "SELECT count(*) FROM retired"):
        return
    connection.execute("INSERT INTO parts.dead FROM retired")
    connection.execute("DELETE FROM parts.revisions WHERE doc IN (SELECT doc FROM retired)")
    for (space,) in tuples(connection, "SELECT space FROM parts.spaces"):
        connection.execute(f"DELETE FROM segment.codes_{space} WHERE doc IN (SELECT doc FROM retired)")


def _check_models(connection: Connection) -> None:
    """Reject an index with vectors of a model that no document has any more: building it anew takes less space."""
    if count_of(
        connection,
        "SELECT count(*) FROM parts.spaces ANTI JOIN (FROM parts.documents WHERE revision <> 0) USING (embedder)",
    ):
        raise UnfitIndex


def _wanted(connection: Connection) -> None:
    """Number the revisions to be added."""
    connection.execute(
        """INSERT INTO parts.spaces
        SELECT row_number() OVER (ORDER BY embedder) + (SELECT count(*) FROM parts.spaces), embedder,
            regexp_extract(embedder, '@(\\d+)$', 1)::INTEGER
        FROM (SELECT DISTINCT embedder FROM parts.documents WHERE revision <> 0 AND doc IS NULL)
        ANTI JOIN parts.spaces USING (embedder)"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE wanted AS
        SELECT (row_number() OVER (ORDER BY d.revision) + (SELECT count(*) FROM parts.revisions)
            + (SELECT count(*) FROM parts.dead) - 1)::INTEGER AS doc, d.revision, s.space
        FROM (SELECT DISTINCT revision, embedder FROM parts.documents WHERE revision <> 0 AND doc IS NULL) AS d
        JOIN parts.spaces AS s USING (embedder)"""
    )
    connection.execute(
        "UPDATE parts.documents AS d SET doc = w.doc FROM wanted AS w WHERE d.revision = w.revision AND d.doc IS NULL"
    )


def _spaces(connection: Connection) -> list[tuple[int, int]]:
    """Return the vector spaces of new revisions, after creating their tables."""
    for space, dimension in tuples(connection, "SELECT space, dimension FROM parts.spaces"):
        if f"vector_{space}" in _columns_of(connection, "segment.chunks"):
            continue
        connection.execute(f"ALTER TABLE segment.chunks ADD COLUMN vector_{space} FLOAT[{dimension}]")
        make_codes(connection, space, dimension)
        segments.join_segments(connection)
    used = tuples(connection, "SELECT space, dimension FROM parts.spaces SEMI JOIN wanted USING (space) ORDER BY 1")
    return [(space, dimension) for space, dimension in used]


def _revisions(connection: Connection, first: int) -> None:
    ((start, end),) = tuples(connection, "SELECT coalesce(min(doc), 0), coalesce(max(doc) + 1, 0) FROM wanted")
    for low in range(start, end, _REVISIONS):
        connection.execute(
            f"""INSERT INTO parts.revisions
            SELECT w.doc, w.revision, w.space, coalesce(c.chunks, 0), coalesce(l.length, 0)
            FROM (FROM wanted WHERE doc >= {low} AND doc < {low + _REVISIONS}) AS w
            LEFT JOIN (SELECT doc, count(*) AS chunks FROM segment.chunks
                WHERE chunk >= {first} AND doc >= {low} AND doc < {low + _REVISIONS} GROUP BY doc) AS c USING (doc)
            LEFT JOIN (SELECT doc, sum(length) AS length FROM lengths
                WHERE doc >= {low} AND doc < {low + _REVISIONS} GROUP BY doc) AS l USING (doc)"""
        )


# --- chunks and vectors


def _chunks(connection: Connection, snapshot: Snapshot, state: IndexState, space: int, dimension: int) -> None:
    """Add the chunks of the wanted revisions from new files, then the remaining ones from older files.

    A revision that a crashed run wrote, or that a restore brought back, is in an older file.
    """
    fresh, _ = _fresh_files(snapshot, state, "chunks")
    are_fresh = set(fresh)
    older = [file for file in snapshot.files["chunks"] if file not in are_fresh]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE missing AS FROM wanted WHERE space = {space}")
    for files in (fresh, older):
        if not files or not count_of(connection, "SELECT count(*) FROM missing"):
            continue
        check_written(snapshot, "chunks", files)
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE found AS SELECT DISTINCT revision
            FROM read_parquet({sql_list(files)}) SEMI JOIN missing USING (revision)"""
        )
        last = segments.next_chunk(connection) - 1
        connection.execute(
            f"""INSERT INTO segment.chunks BY NAME
            SELECT (row_number() OVER () + {last})::INTEGER AS chunk, w.doc, {_CHUNK_COLUMNS},
                c.vector::FLOAT[{dimension}] AS vector_{space}
            FROM read_parquet({sql_list(files)}) AS c
            JOIN (SELECT doc, revision FROM missing) AS w USING (revision)"""
        )
        connection.execute("DELETE FROM missing WHERE revision IN (SELECT revision FROM found)")


def _check_complete(connection: Connection, snapshot: Snapshot, first: int) -> None:
    """Reject documents without their chunks: the chunks table is older than the documents table."""
    missing = count_of(
        connection,
        """SELECT count(*) FROM (SELECT revision, max(chunks) AS wanted FROM parts.documents GROUP BY revision)
        JOIN wanted USING (revision)
        LEFT JOIN (SELECT doc, count(*) AS held FROM segment.chunks WHERE chunk >= $1 GROUP BY doc) USING (doc)
        WHERE coalesce(held, 0) < wanted""",
        [first],
    )
    if missing:
        raise DamagedCorpus(
            f"the corpus is damaged: {next_commit(snapshot.layout, 'chunks')} is missing, or an earlier copy of chunks "
            f"was put back: chunks of {counted(missing, 'document')} are not there"
        )


# --- files


def _copy(connection: Connection, snapshot: Snapshot, state: IndexState, table: Table) -> None:
    from parquetry.storage.lake import schema

    fresh, additive = _fresh_files(snapshot, state, table)
    # An index of an earlier program lacks columns that were added later.
    there = _columns_of(connection, f"parts.{table}")
    for field in (each for each in schema.SCHEMAS[table] if each.name not in there):
        connection.execute(f'ALTER TABLE parts.{table} ADD COLUMN "{field.name}" {schema.DUCKDB_TYPES[field.type]}')
    if not additive:
        connection.execute(f"DELETE FROM parts.{table}")
    connection.execute(f"INSERT INTO parts.{table} BY NAME SELECT * FROM {_scan(table, fresh)}")


def _damage(snapshot: Snapshot, state: IndexState, table: Table) -> str | None:
    """Return the damage in the new files of a table; None if there is none."""
    try:
        check_written(snapshot, table, _fresh_files(snapshot, state, table)[0])
    except DamagedCorpus as error:
        return str(error)
    return None


def _fresh_files(snapshot: Snapshot, state: IndexState, table: Table) -> tuple[list[str], bool]:
    """Return the files to read and True if they extend the indexed ones; False if the index must be emptied first."""
    known = set(state.files.get(table, ()))
    present = {file_name(file): file for file in snapshot.files[table]}
    gone = known - present.keys()
    unknown = {name: file for name, file in present.items() if name not in known}
    # A compacted shard in place of indexed ones has no other rows than they had.
    replaced = {name: old for name, file in unknown.items() if gone and (old := replaced_by(file)) and old <= known}
    if gone - frozenset().union(*replaced.values()):
        return list(present.values()), False
    return [file for name, file in unknown.items() if name not in replaced], True


def _scan(table: Table, files: Sequence[str]) -> str:
    return f"({scan(table, files)})"
