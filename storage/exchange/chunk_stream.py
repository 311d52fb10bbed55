"""The chunks and documents that a caller may see, as a stream of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from parquetry.errors import SettingsError
from parquetry.ids import CHUNK_ID_SQL
from parquetry.storage.database import Connection, reading, tuples
from parquetry.storage.lake import schema
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search.filters import Filters, select_visible

_ROWS = 1024
"""rows in memory at once"""
_CHUNKS = f"""SELECT {CHUNK_ID_SQL} AS id, d.document_id, d.namespace, d.source, d.path, d.uri, d.filename, d.title,
    d.media_type, d.modified_at, c.chunk_index, c.start, c."end", c.kind, c.page, c.headings, c.text, c.tokens,
    c.text_hash, c.embedder, d.visibility, d.org_id, d.user_id, d.tags, d.metadata, c.vector
FROM all_chunks AS c JOIN visible AS d USING (revision)"""
_DOCUMENTS = """SELECT d.document_id, d.namespace, d.uri, d.title, t.text
FROM all_texts AS t JOIN visible AS d USING (revision)"""


@dataclass(frozen=True, slots=True)
class VisibleChunks:
    """The chunks of the documents that a caller may see, in one version of a corpus."""

    connection: Connection
    embedder: str
    """id of the model of their vectors"""
    documents: int
    version: int

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.embedder.rpartition("@")[2])

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Yield the chunks in order of storage: those of a document follow each other."""
        return self._batches(_CHUNKS)

    def texts(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents with their texts."""
        return self._batches(_DOCUMENTS)

    def _batches(self, query: str) -> Iterator[pa.RecordBatch]:
        with reading():
            yield from self.connection.sql(query).to_arrow_reader(_ROWS)


@contextmanager
def visible_chunks(snapshot: Snapshot, filters: Filters) -> Iterator[VisibleChunks]:
    """Yield what a caller may see.

    Args:
        snapshot: snapshot of the corpus.
        filters: the caller, and which documents.

    Raises:
        SettingsError: there is nothing, or its vectors are of several models, which no engine takes as one column.
        StorageError: the corpus cannot be read.
    """
    with connect_snapshot(snapshot) as connection:
        columns = [f'"{name}"' for name in schema.DOCUMENTS.names]
        select_visible(connection, filters, "documents", columns)
        with reading():
            found = tuples(
                connection, "SELECT embedder, count(*) FROM visible WHERE revision <> 0 GROUP BY 1 ORDER BY 1"
            )
        if not found:
            raise SettingsError("there is nothing to export: no document with text matches, or this caller sees none")
        if len(found) > 1:
            models = ", ".join(embedder for embedder, _ in found)
            raise SettingsError(f"these documents have vectors of {models}; export them one by one, with --namespace")
        ((embedder, documents),) = found
        yield VisibleChunks(connection, embedder, documents, snapshot.version)
