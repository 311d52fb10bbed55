"""Content of a corpus without the numbers that differ from run to run."""

from __future__ import annotations

from typing import Any

from parquetry import connect

_CHUNKS = "SELECT * EXCLUDE (revision) FROM chunks ORDER BY chunk_id"
_DOCUMENTS = (
    "SELECT path, document_id, status, error, title, content_hash, fingerprint, pages, characters, chunks, tokens "
    "FROM documents ORDER BY path"
)
_TEXTS = "SELECT * EXCLUDE (revision) FROM texts ORDER BY document_id"


def content_of(root: str) -> dict[str, list[Any]]:
    """Return rows, texts, chunks and vectors of a corpus."""
    connection = connect(root)
    return {query: [str(row) for row in connection.sql(query).fetchall()] for query in (_DOCUMENTS, _TEXTS, _CHUNKS)}
