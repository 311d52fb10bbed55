"""Export of a caller's visible part of a corpus as a separate DuckDB database.

It is built like a search index, by the same code, from the visible documents only: its word list, statistics and
numbers do not depend on any others. Runs and failures refer to all users' documents and are left empty.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from parquetry.errors import SettingsError, StorageError, first_line
from parquetry.process_folder import process_folder
from parquetry.storage.database import Connection, open_duckdb, reading, sql_list, sql_string, tuples
from parquetry.storage.files.durable import make_folder
from parquetry.storage.files.layout import TABLES, Table
from parquetry.storage.index.build import read_state
from parquetry.storage.index.building import built
from parquetry.storage.index.open_index import attached, build
from parquetry.storage.lake import schema
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.quality_views import quality_views
from parquetry.storage.lake.snapshot_views import NOTES, connect_snapshot, scan
from parquetry.storage.search.filters import Filters, select_visible
from parquetry.storage.search.locked import lock
from parquetry.storage.search.sorted_rows import bounds_of_parts, write_sorted

EXPORT_FILE = "corpus.duckdb"
_ORDER: Mapping[Table, Sequence[str]] = {
    "chunks": ("revision", "chunk_index"),
    "texts": ("revision",),
    "notes": ("revision", "note"),
}
"""order of the rows of each table"""

_TEXTS = """CREATE VIEW texts AS
SELECT d.document_id, d.namespace, d.uri, d.filename, d.title, t.text, t.structure, t.embedder, t.revision
FROM parts.texts AS t JOIN documents AS d USING (revision)"""


@dataclass(frozen=True, slots=True)
class Export:
    """A finished export."""

    path: Path
    version: int
    """version of the corpus"""
    documents: int
    chunks: int


def export_corpus(snapshot: Snapshot, filters: Filters, folder: Path, language: str) -> Export:
    """Write a self-contained DuckDB file of the documents that a caller may see.

    It has the views and macros of a search index and opens in any DuckDB from 1.5 on, without an extension.

    Args:
        snapshot: snapshot of the corpus.
        filters: the caller, and which documents.
        folder: folder for `corpus.duckdb`; an earlier export there is replaced in one step.
        language: language of the words.

    Raises:
        SettingsError: a file of that name exists and is not an export, or the folder cannot be written to.
        StorageError: the corpus cannot be read.
    """
    path = folder / EXPORT_FILE
    if path.exists() and not _is_export(path):
        raise SettingsError(f"{path} is not an export of Parquetry and is left alone; choose another folder")
    try:
        make_folder(folder)
        with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as aside:
            building = Path(aside) / EXPORT_FILE
            visible = _visible_alone(snapshot, filters, aside)
            built(building, visible, language)
            with attached(building, read_only=False) as connection:
                _add_texts(connection, visible)
                connection.execute("CHECKPOINT ix")
                done = _counted(connection, path)
            building.replace(path)
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {error.strerror or error}") from error
    except duckdb.Error as error:
        raise StorageError(f"the export to {folder} failed: {first_line(error)}") from error
    return done


def scoped(snapshot: Snapshot, filters: Filters, language: str) -> Connection:
    """Open a connection for a caller's own SQL: it holds what the caller may see, and can access nothing else.

    No file, no network, no extension, no variable of this program, and no setting that would change that; time and
    memory of a statement are limited (`parquetry.storage.search.locked`).

    Args:
        snapshot: snapshot of the corpus.
        filters: the caller, and which documents.
        language: language of the words.

    Raises:
        StorageError: the corpus cannot be read, or the visible part does not fit in memory.
    """
    with ExitStack() as unfinished:
        connection = unfinished.enter_context(open_duckdb())
        # Data on disk could not be protected from statements.
        connection.execute("SET temp_directory = ''")
        connection.execute("ATTACH ':memory:' AS ix")
        connection.execute("USE ix")
        try:
            with tempfile.TemporaryDirectory(dir=process_folder()) as folder, reading():
                visible = _visible_alone(snapshot, filters, folder)
                build(connection, visible, language)
                _add_texts(connection, visible)
        except duckdb.OutOfMemoryException as error:
            raise StorageError(
                "what this caller may see does not fit in memory; `parquetry export` writes it to a file to query"
            ) from error
        lock(connection)
        unfinished.pop_all()
    return connection


def _add_texts(connection: Connection, visible: Snapshot) -> None:
    """Add the texts of the documents to an index, and the views on them."""
    connection.execute(
        f"""CREATE TABLE parts.texts AS
        SELECT revision, text, structure, embedder FROM read_parquet({sql_list(visible.files["texts"])})"""
    )
    connection.execute(_TEXTS)
    connection.execute(f"CREATE TABLE parts.notes AS {scan('notes', visible.files['notes'])}")
    for view in (NOTES.format(notes="parts.notes"), *quality_views("parts.texts")):
        connection.execute(view)


def _visible_alone(snapshot: Snapshot, filters: Filters, folder: str) -> Snapshot:
    """Return the corpus as if only the visible documents had ever been published, in a single publish.

    An index records the names and number of the files that it was built from, and numbers their rows by order: they
    depend on the visible documents alone.
    """
    files: dict[Table, tuple[str, ...]] = dict.fromkeys(TABLES, ())
    with connect_snapshot(snapshot) as connection, reading():
        # A caller who exports documents also exports the entries visible to that caller.
        select_visible(
            connection, replace(filters, what="both"), "published", [f'"{name}"' for name in schema.DOCUMENTS.names]
        )
        file = Path(folder) / "documents.parquet"
        # The number of publishes of a namespace would also reveal others' documents.
        connection.execute(
            f"""COPY (SELECT * REPLACE (1::BIGINT AS sequence) FROM visible ORDER BY namespace, source, path)
            TO {sql_string(str(file))} (FORMAT parquet)"""
        )
        files["documents"] = (str(file),)
        bounds = bounds_of_parts(connection)
        for table, keys in _ORDER.items():
            files[table] = write_sorted(connection, table, keys, bounds, Path(folder))
    return Snapshot(snapshot.layout, snapshot.version, files)


def _is_export(path: Path) -> bool:
    try:
        with attached(path, read_only=True) as connection:
            read_state(connection)
            return bool(tuples(connection, "SELECT 1 FROM duckdb_tables() WHERE table_name = 'texts'"))
    except (duckdb.Error, StorageError, KeyError, ValueError):
        return False


def _counted(connection: Connection, path: Path) -> Export:
    ((documents, chunks),) = tuples(
        connection, "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)"
    )
    return Export(path, read_state(connection).version, documents, chunks)
