"""The Delta tables of a corpus for readers other than DuckDB: their locations, and SQL of the visible rows.

The table `documents` holds every row that was ever published, and `chunks` every chunk written by a run. Both queries
are plain SQL that DuckDB, Polars and Spark read alike: no quoted names, no window functions, no casts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parquetry.ids import CHUNK_ID_SQL
from parquetry.storage.files.layout import TABLES, Table
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT
from parquetry.storage.lake.lake import Lake

DOCUMENTS_QUERY = f"""SELECT history.* FROM documents AS history
JOIN (
    SELECT namespace, document_id, max(sequence) AS sequence FROM documents GROUP BY namespace, document_id
) AS newest
ON history.namespace = newest.namespace AND history.document_id = newest.document_id
    AND history.sequence = newest.sequence
WHERE NOT history.removed AND {IS_DOCUMENT}"""
"""SQL of the current documents, over the raw table `documents`."""
CHUNKS_QUERY = f"""SELECT {CHUNK_ID_SQL} AS chunk_id, d.document_id, d.namespace,
    d.source, d.path, d.uri, d.filename, d.title, d.visibility, d.org_id, d.user_id, c.*
FROM chunks AS c
JOIN (
{DOCUMENTS_QUERY}
) AS d
ON c.revision = d.revision"""
"""SQL of their chunks, over the raw tables `chunks` and `documents`."""
QUERIES: Mapping[str, str] = {"documents": DOCUMENTS_QUERY, "chunks": CHUNKS_QUERY}


@dataclass(frozen=True, slots=True)
class RawTables:
    """The Delta tables of one version of a corpus."""

    version: int
    """version of the corpus, which is the version of the table `documents`"""
    addresses: Mapping[Table, str]
    """folder or URL of each Delta table"""
    files: Mapping[Table, Sequence[str]]
    """Parquet files of each table; they contain the rows of this version"""


def raw_tables(root: str, version: int | None = None) -> RawTables:
    """List the Delta tables of a corpus and their files.

    `documents` is listed first. Shards are registered before the rows that name them: the other tables contain
    everything that these rows name, and the join hides what was published since.

    Args:
        root: folder or URL of the corpus.
        version: version number as listed by `parquetry history`; None for the newest.

    Raises:
        SettingsError: there is no corpus at `root`, or no such version.
        StorageError: the corpus cannot be read.
    """
    snapshot = Lake(root).snapshot(version)
    addresses = {table: snapshot.layout.table(table) for table in TABLES}
    return RawTables(snapshot.version, addresses, snapshot.files)
