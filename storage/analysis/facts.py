"""Facts on the documents of a version, and their vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from parquetry.storage.database import Connection

_LITTLE = 200
"""characters of a page, or of a whole document without pages, that are little"""
_FACTS = f"""
SELECT d.document_id, d.namespace, d.revision, d.content_hash, d.embedder, d.characters, q.known_loss, q.pages,
    q.pages_without_text, q.pages_unread, q.pages_ocr, q.ocr_confidence, q.unmapped, q.cut,
    d.status = 'indexed' AND (coalesce(q.median_characters, d.characters) < {_LITTLE}
        AND (q.pages IS NOT NULL OR d.size > 20 * d.characters)) AS little_text,
    t.vector
FROM documents AS d LEFT JOIN quality AS q USING (revision) LEFT JOIN texts AS t USING (revision)
WHERE d.revision <> 0
ORDER BY d.namespace, d.document_id
"""

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """Facts on the documents of a version, and the vectors of those that can be compared."""

    table: pa.Table
    """a row for each document"""
    rows: Rows
    """rows of `table` that can be compared, 0-based"""
    vectors: Matrix
    """vectors of these, L2-normalised"""
    left_out: int
    """number of documents without a vector of the usual embedder"""


def read_facts(connection: Connection) -> CorpusFacts:
    """Return the facts on all documents.

    Args:
        connection: connection of `connect_snapshot`.
    """
    found = connection.sql(_FACTS).to_arrow_table()
    table = found.drop_columns(["vector"])
    embedders = found["embedder"].to_pylist()
    known = [each for each in set(embedders) if each is not None]
    usual = max(sorted(known), key=embedders.count, default=None)
    rows = np.array([row for row, each in enumerate(embedders) if usual is not None and each == usual], np.int64)
    vectors = found["vector"].combine_chunks()
    flat = np.asarray((vectors if len(rows) == len(vectors) else vectors.take(pa.array(rows))).flatten(), np.float32)
    if not len(rows) or len(flat) % len(rows):
        return CorpusFacts(table, np.array([], np.int64), np.zeros((0, 1), np.float32), table.num_rows)
    matrix = flat.reshape(len(rows), -1)
    # A document without words has a vector of zeros.
    lengths = np.linalg.norm(matrix, axis=1)
    real = np.isfinite(lengths) & (lengths > 0)
    return CorpusFacts(
        table, rows[real], np.ascontiguousarray(matrix[real] / lengths[real, None]), table.num_rows - int(real.sum())
    )
