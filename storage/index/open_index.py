"""Connections to a search index: create, fill, update and read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from parquetry.errors import StorageError
from parquetry.storage.database import Connection, open_duckdb, reading, sql_string, transaction, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.index.build import MemoryOf, advance, create_tables
from parquetry.storage.index.segments import STORAGE, Division, attach_segments, segments_of
from parquetry.storage.index.views import VectorSpace, statements
from parquetry.storage.index.wear import divide
from parquetry.storage.lake.knowledge_views import IS_ENTRY
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import failing

BUILD_MEMORY = ("64MB", "128MB", "1GB")
"""memory that DuckDB uses to write to an index before it spills to disk: for short chunks; for others; and for few
chunks, which do not reach it, or if that does not suffice"""
_FEW_CHUNKS = 2_000
_SHORT_CHUNK = 250
"""characters per chunk, on average, up to which chunks are short"""
_SHORT_TEXT = 60_000_000
"""characters of all short chunks"""
_SHORT_CHUNKS = 400_000
"""number of short chunks: in documents of one chunk each, what is kept of each document is more than their text"""


@dataclass
class OpenIndex:
    """An index open for reading; close it, so that its file can be reused."""

    connection: Connection
    """connection with the index as current database, read-only"""
    version: int
    """version of the corpus"""
    lease: int | None
    """descriptor of the locked lease file; None for an index in memory"""

    def session(self) -> Connection:
        """Return one more connection to the index, for another thread or for temporary tables."""
        return another_session(self.connection)

    @property
    def is_file(self) -> bool:
        """True if the index is a file, False if it is in memory."""
        return self.lease is not None

    def is_of(self, lease: Path) -> bool:
        """True if this index holds the lease file that is now at a path."""
        with suppress(FileNotFoundError):
            return self.lease is not None and os.fstat(self.lease).st_ino == lease.stat().st_ino
        return False

    def close(self) -> None:
        self.connection.close()
        if self.lease is not None:
            os.close(self.lease)
            self.lease = None


def another_session(connection: Connection) -> Connection:
    """Return one more connection with the same index as current database."""
    session = connection.cursor()
    session.execute("USE ix")
    session.execute("SET TimeZone = 'UTC'")
    return session


def build(
    connection: Connection,
    snapshot: Snapshot,
    language: str,
    division: Division | None = None,
    memory: MemoryOf | None = None,
) -> bool:
    """Create the index of a version in the empty current database of a connection.

    Args:
        connection: connection for writing.
        snapshot: snapshot of the version.
        language: language of the words.
        division: as for `update`.
        memory: as for `advance`.

    Returns:
        As `update`.
    """
    create_tables(connection, language)
    return update(connection, snapshot, division, memory)


def memory_of(chunks: int, characters: int) -> str:
    """Return the memory of `BUILD_MEMORY` in which DuckDB adds chunks without reading from disk again and again.

    Args:
        chunks: number of chunks.
        characters: number of their characters.
    """
    short, usual, much = BUILD_MEMORY
    if chunks <= _FEW_CHUNKS:
        return much
    are_short = chunks <= _SHORT_CHUNKS and characters <= min(_SHORT_CHUNK * chunks, _SHORT_TEXT)
    return short if are_short else usual


def update(
    connection: Connection, snapshot: Snapshot, division: Division | None = None, memory: MemoryOf | None = None
) -> bool:
    """Update the index in the current database of a connection to a version, with its views and macros.

    Args:
        connection: connection for writing.
        snapshot: snapshot of the version.
        division: where and when its rows move to segments; None to keep all in the current database.
        memory: as for `advance`.

    Returns:
        True if rows moved to segments: `written` gives their space back.
    """
    filesystem_at(snapshot.layout.root).attach(connection)
    damaged = advance(connection, snapshot, memory)
    moved = division is not None and divide(connection, division)
    wanted = statements(spaces_of(connection), {table: failing(table, wrong) for table, wrong in damaged.items()})
    made = tuples(connection, "SELECT value FROM parts.meta WHERE key = 'views'")
    if made != [(json.dumps(wanted),)]:
        with transaction(connection):
            for statement in wanted:
                connection.execute(statement)
            connection.execute("DELETE FROM parts.meta WHERE key = 'views'")
            connection.execute("INSERT INTO parts.meta VALUES ('views', $1)", [json.dumps(wanted)])
    connection.execute("CHECKPOINT ix")
    return moved


def written(path: Path, write: Callable[[Connection], bool], memory: str = BUILD_MEMORY[-1]) -> list[str]:
    """Write to an index file that nobody else has open, and return the names of the segments that it needs then.

    Args:
        path: index file; created if it is not there.
        write: receives a connection with the file as current database; tells if rows moved to segments.
        memory: as for `attach`.
    """
    with attached(path, read_only=False, memory=memory) as connection:
        moved = write(connection)
        segments = [each.name for each in segments_of(connection)]
    if moved:
        _rewrite(path)
    return segments


def _rewrite(path: Path) -> None:
    """Write an index file again without the space of rows that left it: a file gives back only what is at its end."""
    fresh = path.with_name(f"{path.stem}-again.duckdb")
    with open_duckdb() as connection, reading():
        connection.execute(f"SET memory_limit = '{BUILD_MEMORY[-1]}'")
        connection.execute(f"SET temp_directory = {sql_string(f'{path}.tmp')}")
        connection.execute(f"ATTACH {sql_string(str(path))} AS worn (READ_ONLY)")
        connection.execute("USE worn")
        attach_segments(connection, path.parent)
        connection.execute(f"ATTACH {sql_string(str(fresh))} AS ix ({STORAGE})")
        connection.execute("USE ix")
        connection.execute("COPY FROM DATABASE worn TO ix")
        connection.execute("CHECKPOINT ix")
    fresh.replace(path)


def spaces_of(connection: Connection) -> list[VectorSpace]:
    """Return the vector spaces of the index in the current database that hold a current revision."""
    found = tuples(
        connection,
        "SELECT space, embedder, dimension FROM parts.spaces SEMI JOIN parts.revisions USING (space) ORDER BY space",
    )
    ((mixed,),) = tuples(connection, f"SELECT count(*) > 0 FROM parts.documents WHERE {IS_ENTRY}")
    # Codes of replaced revisions are deleted from the index file alone.
    mixed = mixed or bool(segments_of(connection))
    return [
        VectorSpace(
            number, name, dimension, tuples(connection, f"SELECT count(*) FROM parts.codes_{number}")[0][0], mixed
        )
        for number, name, dimension in found
    ]


def read_all(connection: Connection) -> None:
    """Read every value of an index: DuckDB verifies the checksum of each block that it reads.

    Args:
        connection: connection with the index as current database.

    Raises:
        StorageError, duckdb.Error: a part of the index cannot be read.
    """
    for database, schema, table in tuples(
        connection,
        """SELECT database_name, schema_name, table_name FROM duckdb_tables()
        WHERE NOT temporary AND schema_name IN ('parts', 'segment')""",
    ):
        tuples(connection, f'SELECT bit_xor(hash(t)) FROM "{database}"."{schema}"."{table}" AS t')


def in_memory(snapshot: Snapshot, language: str) -> OpenIndex:
    """Build an index in memory, for one process, of a version other than the newest; costs a full build.

    Args:
        snapshot: snapshot of the version.
        language: language of the words.
    """
    connection = open_duckdb()
    with reading(), ExitStack() as unfinished:
        unfinished.callback(connection.close)
        connection.execute("ATTACH ':memory:' AS ix")
        connection.execute("USE ix")
        build(connection, snapshot, language)
        unfinished.pop_all()
    return OpenIndex(connection, snapshot.version, None)


def attach(path: Path, *, read_only: bool, memory: str = BUILD_MEMORY[-1]) -> Connection:
    """Open a connection with an index file as current database, and its segments beside it.

    Args:
        path: index file.
        read_only: False to write to the index file; segments are never written to.
        memory: what writing takes at most, before it spills to disk.
    """
    connection = open_duckdb()
    with ExitStack() as unfinished:
        unfinished.callback(connection.close)
        if read_only:
            options = "READ_ONLY"
        else:
            options = STORAGE
            connection.execute(f"SET memory_limit = '{memory}'")
            connection.execute(f"SET temp_directory = {sql_string(f'{path}.tmp')}")
        connection.execute(f"ATTACH {sql_string(str(path))} AS ix ({options})")
        connection.execute("USE ix")
        attach_segments(connection, path.parent)
        unfinished.pop_all()
    return connection


@contextmanager
def attached(path: Path, *, read_only: bool, memory: str = BUILD_MEMORY[-1]) -> Iterator[Connection]:
    """Like `attach`, but closed at the end of the block."""
    connection = attach(path, read_only=read_only, memory=memory)
    try:
        with reading():
            yield connection
    finally:
        connection.close()


def is_sound(path: Path) -> bool:
    """True if all rows of an index file, or of a segment, can be read.

    DuckDB verifies the checksum of every block that it reads; the segments of an index file are read with it.
    """
    try:
        with attached(path, read_only=True) as connection:
            read_all(connection)
    except (duckdb.Error, StorageError):
        return False
    return True
