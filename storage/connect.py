"""A DuckDB connection on a corpus: the views that analysts, searches and runs read through."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from knowledge.errors import StorageError
from storage import schema
from storage.lake import Lake, Snapshot
from storage.layout import TABLES, Table

Connection = duckdb.DuckDBPyConnection


def connect(root: str, *, version: int | None = None) -> Connection:
    """An in-memory DuckDB connection with a view for each table of a corpus.

    Views: `documents` (current ones), `chunks` (visible ones, with their document), `texts`, `runs`, `failures`, and
    `document_history` (every row ever published up to the version).

    Args:
        root: folder of the corpus.
        version: as `parquetry history` shows; None for the newest.

    Raises:
        SettingsError: there is no corpus at `root`, or no such version.
        StorageError: it cannot be read.
    """
    return connect_snapshot(Lake(root).snapshot(version))


def connect_snapshot(snapshot: Snapshot) -> Connection:
    """As `connect`, on files that were listed before."""
    connection = open_duckdb()
    with reading():
        for statement in _base_views(snapshot):
            connection.execute(statement)
        for statement in _chunk_views(_dimensions(connection)):
            connection.execute(statement)
    return connection


def script(snapshot: Snapshot) -> str:
    """SQL that makes the views of `connect` in any DuckDB from 1.2 on, without an extension."""
    with connect_snapshot(snapshot) as connection:
        statements = [*_base_views(snapshot), *_chunk_views(_dimensions(connection))]
    return "".join(f"{statement.strip()};\n" for statement in statements)


@contextmanager
def reading() -> Iterator[None]:
    """Say in one line what it means that DuckDB cannot read a corpus.

    Raises:
        StorageError: a file of the corpus is missing, cut short, or not to be read.
    """
    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException) as error:
        raise StorageError(
            f"the corpus cannot be read: {str(error).splitlines()[0]}; `parquetry doctor` tells what is damaged"
        ) from error


def open_duckdb() -> Connection:
    """A connection that reads local files only and fetches nothing."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def rows(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """All rows of a query as dictionaries."""
    with reading():
        result = connection.execute(sql, list(parameters))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


def tuples(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    with reading():
        return connection.execute(sql, list(parameters)).fetchall()


def sql_list(values: Iterable[str]) -> str:
    """A SQL list literal of strings."""
    return "[" + ", ".join("'" + value.replace("'", "''") + "'" for value in values) + "]"


_DOCUMENTS = """
CREATE VIEW documents AS
SELECT * FROM (
    SELECT * FROM document_history
    QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1
) WHERE NOT removed
"""

_CHUNKS = """
CREATE VIEW chunks AS
SELECT d.document_id || '-chunk-' || c.chunk_index AS chunk_id, d.document_id, d.namespace, d.source, d.uri, d.filename,
    d.title, c.chunk_index, c.kind, c.page, c.headings, c.start, c."end", c.text, c.tokens, c.text_hash, c.embedder,
    {vector} AS vector, c.revision
FROM all_chunks AS c JOIN documents AS d USING (revision)
"""

_TEXTS = """
CREATE VIEW texts AS
SELECT d.document_id, d.namespace, d.uri, d.filename, d.title, t.text, t.structure, t.embedder, {vector} AS vector,
    t.revision
FROM all_texts AS t JOIN documents AS d USING (revision)
"""


def _base_views(snapshot: Snapshot) -> list[str]:
    names = {table: "document_history" if table == "documents" else f"all_{table}" for table in TABLES}
    scans = [f"CREATE VIEW {name} AS {_scan(table, snapshot.files[table])}" for table, name in names.items()]
    copies = [f"CREATE VIEW {name} AS SELECT * FROM all_{name}" for name in ("runs", "failures")]
    return [*scans, *copies, _DOCUMENTS]


def _chunk_views(dimensions: Sequence[int]) -> list[str]:
    # Parquet knows no arrays of fixed size, which vector functions need; several sizes fit no one type.
    fixed = f"::FLOAT[{dimensions[0]}]" if len(dimensions) == 1 else ""
    return [_CHUNKS.format(vector=f"c.vector{fixed}"), _TEXTS.format(vector=f"t.vector{fixed}")]


def _scan(table: Table, files: Sequence[str]) -> str:
    if files:
        return f"SELECT * FROM read_parquet({sql_list(files)})"
    columns = (f'NULL::{schema.DUCKDB_TYPES[field.type]} AS "{field.name}"' for field in schema.SCHEMAS[table])
    return f"SELECT {', '.join(columns)} WHERE false"


def _dimensions(connection: Connection) -> list[int]:
    """Dimensions of the current documents' vectors, from the embedders' ids."""
    found = connection.execute(
        """SELECT DISTINCT regexp_extract(embedder, '@(\\d+)$', 1)::INTEGER FROM documents
        WHERE revision <> 0 AND regexp_matches(embedder, '@\\d+$') ORDER BY 1"""
    ).fetchall()
    return [dimension for (dimension,) in found]


class QueryError(Exception):
    """A SQL statement that DuckDB refused; the text is DuckDB's first line."""


def query(connection: Connection, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a statement.

    Returns:
        Column names, and rows.

    Raises:
        QueryError: the statement is wrong.
    """
    try:
        result = connection.execute(statement)
        if result is None:
            raise QueryError("there is no statement in it")
        return [column[0] for column in result.description or ()], result.fetchall()
    except duckdb.Error as error:
        raise QueryError(str(error).splitlines()[0]) from error
