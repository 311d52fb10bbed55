"""The corpus as views straight on the Parquet files of a snapshot: every version, without an index, slower."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from parquetry.errors import StorageError, first_line
from parquetry.ids import CHUNK_ID_SQL
from parquetry.storage.database import Connection, open_duckdb, reading, sql_list, sql_string
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import TABLES, WIDENED, Table
from parquetry.storage.lake.damage import damage_in
from parquetry.storage.lake.knowledge_views import DOCUMENT_VIEWS, ledger_views
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.quality_views import quality_views

NEWEST = """
SELECT * FROM (
    SELECT * FROM {history}
    QUALIFY row_number() OVER (PARTITION BY namespace, document_id ORDER BY sequence DESC) = 1
) WHERE NOT removed
"""
"""current rows of `documents`"""
_PUBLISHED = f"CREATE VIEW published AS {NEWEST.format(history='document_history')}"

_CHUNKS = f"""
CREATE VIEW chunks AS
SELECT {CHUNK_ID_SQL} AS chunk_id, d.document_id, d.namespace, d.source, d.uri, d.filename,
    d.title, c.chunk_index, c.kind, c.page, c.headings, c.start, c."end", c.text, c.tokens, c.text_hash, c.embedder,
    {{vector}} AS vector, c.revision
FROM all_chunks AS c JOIN documents AS d USING (revision)
"""

_TEXTS = """
CREATE VIEW texts AS
SELECT d.document_id, d.namespace, d.uri, d.filename, d.title, t.text, t.structure, t.embedder, {vector} AS vector,
    t.revision
FROM all_texts AS t JOIN documents AS d USING (revision)
"""

NOTES = """
CREATE VIEW notes AS
SELECT d.document_id, d.namespace, d.source, d.uri, d.filename, n.stage, n.note, n.run_id, n.noted_at, n.revision
FROM {notes} AS n JOIN documents AS d USING (revision)
"""


def connect_snapshot(snapshot: Snapshot) -> Connection:
    """Open an in-memory DuckDB connection with a view for each table of a corpus.

    Views: `documents` (current ones), `chunks` (visible ones, with their document), `texts`, `notes` (on current
    documents), `quality` (how completely current documents were read) and `pages` (of them), `runs`, `failures`,
    `document_history` (every row ever published up to the version), `published` (the current ones of these: documents,
    entries and sessions), `entries` (live ones), `entry_history`, `decisions` and `sessions`.
    """
    connection = open_duckdb()
    filesystem_at(snapshot.layout.root).attach(connection)
    with reading():
        for statement in _base_views(snapshot):
            connection.execute(statement)
        for statement in _chunk_views(_dimensions(connection)):
            connection.execute(statement)
    return connection


def connect_readable(snapshot: Snapshot) -> Connection:
    """Like `connect_snapshot`, but a view of an unreadable table fails with the reason when it is used."""
    try:
        return connect_snapshot(snapshot)
    except (StorageError, duckdb.Error):
        return connect_snapshot(readable(snapshot))


def add_present(connection: Connection, present: Snapshot) -> None:
    """Add the view `present` to a connection: as `published`, but of another version of the corpus."""
    with reading():
        history = f"({scan_of(present, 'documents')})"
        connection.execute(f"CREATE OR REPLACE VIEW present AS {NEWEST.format(history=history)}")


def add_differing(connection: Connection, then: Snapshot, now: Snapshot) -> None:
    """Add the tables `then` and `now`: as `published` of two versions, of the documents alone that may differ.

    These are the ones with a row in a file that only one of the versions has.

    Raises:
        StorageError: a version cannot be read.
    """
    for snapshot in (then, now):
        if "documents" in snapshot.damaged:
            raise StorageError(snapshot.damaged["documents"])
    of_then, of_now = frozenset(then.files["documents"]), frozenset(now.files["documents"])
    parts = {"shared": of_then & of_now, "of_then": of_then - of_now, "of_now": of_now - of_then}
    keys = f"SELECT DISTINCT document_id FROM ({scan('documents', sorted(of_then ^ of_now))})"
    with reading():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE differing AS {keys}")
        for name, files in parts.items():
            rows = f"FROM ({scan('documents', sorted(files))}) WHERE document_id IN (FROM differing)"
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {rows}")
        for name in ("then", "now"):
            history = f"(FROM shared UNION ALL FROM of_{name})"
            connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {NEWEST.format(history=history)}')


def readable(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without the tables of which DuckDB cannot create a view."""
    damaged: dict[Table, str] = {}
    left = [table for table in TABLES if table not in snapshot.damaged]
    while left:
        # Some damage makes a DuckDB instance unusable for everything else.
        with open_duckdb() as connection:
            filesystem_at(snapshot.layout.root).attach(connection)
            for table in tuple(left):
                left.remove(table)
                try:
                    connection.execute(f"CREATE VIEW all_{table} AS {scan_of(snapshot, table)}")
                except duckdb.Error as error:
                    found = damage_in(snapshot, [table]) or [f"{snapshot.layout.table(table)}: {first_line(error)}"]
                    damaged[table] = f"the corpus is damaged: {found[0]}"
                    break
    return snapshot.without(damaged) if damaged else snapshot


def script(snapshot: Snapshot) -> str:
    """Return SQL that creates the views of `connect` in any DuckDB from 1.2 on, without extensions."""
    with connect_snapshot(snapshot) as connection:
        statements = [*_base_views(snapshot), *_chunk_views(_dimensions(connection))]
    return "".join(f"{statement.strip()};\n" for statement in statements)


def file_views(snapshot: Snapshot, dimensions: Sequence[int]) -> list[str]:
    """Return SQL that adds the views of tables missing in an index, for one connection.

    Args:
        snapshot: snapshot of the index's version.
        dimensions: dimensions of its vectors.
    """
    views: dict[str, Table] = {
        "document_history": "documents",
        "all_texts": "texts",
        "all_notes": "notes",
        "all_entries": "entries",
        "all_decisions": "decisions",
        "runs": "runs",
        "failures": "failures",
        "searches": "searches",
    }
    scans = [f"CREATE TEMP VIEW {name} AS {scan_of(snapshot, table)}" for name, table in views.items()]
    texts = _TEXTS.format(vector=f"t.vector{_fixed(dimensions)}")
    views_of_files = (texts, NOTES.format(notes="all_notes"), *quality_views("all_texts"), *ledger_views())
    return [*scans, *(view.replace("CREATE VIEW", "CREATE TEMP VIEW") for view in views_of_files)]


def _base_views(snapshot: Snapshot) -> list[str]:
    names = {table: "document_history" if table == "documents" else f"all_{table}" for table in TABLES}
    scans = [f"CREATE VIEW {name} AS {scan_of(snapshot, table)}" for table, name in names.items()]
    copies = [f"CREATE VIEW {name} AS SELECT * FROM all_{name}" for name in ("runs", "failures", "searches")]
    added = (NOTES.format(notes="all_notes"), *quality_views("all_texts"), *ledger_views())
    return [*scans, *copies, _PUBLISHED, *DOCUMENT_VIEWS, *added]


def _chunk_views(dimensions: Sequence[int]) -> list[str]:
    fixed = _fixed(dimensions)
    return [_CHUNKS.format(vector=f"c.vector{fixed}"), _TEXTS.format(vector=f"t.vector{fixed}")]


def _fixed(dimensions: Sequence[int]) -> str:
    # Parquet has no fixed-size arrays, which vector functions need; vectors of several dimensions fit no single type.
    return f"::FLOAT[{dimensions[0]}]" if len(dimensions) == 1 else ""


def scan_of(snapshot: Snapshot, table: Table) -> str:
    """Return SQL of the rows of a table; for a damaged table, a view of it can be created, and fails when used."""
    if table in snapshot.damaged:
        return failing(table, snapshot.damaged[table])
    return scan(table, snapshot.files[table])


def failing(table: Table, wrong: str) -> str:
    """Return SQL with the columns of a table that fails with a message."""
    return f"SELECT {_no_values(table)} WHERE error({sql_string(wrong)})::BOOLEAN"


def _no_values(table: Table) -> str:
    from parquetry.storage.lake import schema

    columns = (f'NULL::{schema.DUCKDB_TYPES[field.type]} AS "{field.name}"' for field in schema.SCHEMAS[table])
    return ", ".join(columns)


def scan(table: Table, files: Sequence[str]) -> str:
    """Return SQL of the rows of a table's files; without files, SQL of an empty table with its columns."""
    if files and table not in WIDENED:
        return f"SELECT * FROM read_parquet({sql_list(files)})"
    none = f"SELECT {_no_values(table)} WHERE false"
    if not files:
        return none
    return f"{none} UNION ALL BY NAME SELECT * FROM read_parquet({sql_list(files)}, union_by_name := true)"


def _dimensions(connection: Connection) -> list[int]:
    """Return the dimensions of the current rows' vectors, from the embedders' ids."""
    found = connection.execute(
        """SELECT DISTINCT regexp_extract(embedder, '@(\\d+)$', 1)::INTEGER FROM published
        WHERE revision <> 0 AND regexp_matches(embedder, '@\\d+$') ORDER BY 1"""
    ).fetchall()
    return [dimension for (dimension,) in found]
