"""Wear of an index: signs that it is better built again than updated."""

from __future__ import annotations

from parquetry.storage.database import Connection, tuples
from parquetry.storage.files.layout import file_name
from parquetry.storage.index.build import read_state
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.lineage import all_replaced_by

WORN_SHARE = 0.3
"""share of dead or unsorted rows that requires a rebuild"""
WORN_ROWS = 50_000
"""number of such rows below which an index is never rebuilt for them"""


def needs_rebuild(connection: Connection, snapshot: Snapshot) -> bool:
    """True if an index needs a rebuild: too much is dead or unsorted, or rows have been erased since.

    Until then, it keeps the texts of dead documents. Files that were compacted are not erased.
    """
    files = snapshot.files["documents"]
    gone = set(read_state(connection).files.get("documents", ())) - {file_name(file) for file in files}
    return not gone <= all_replaced_by(files if gone else ()) or _is_worn(connection)


def _is_worn(connection: Connection) -> bool:
    ((dead, chunks, sorted_rows, postings),) = tuples(
        connection,
        """SELECT (SELECT count(*) FROM parts.chunks SEMI JOIN parts.dead USING (doc)),
            (SELECT count(*) FROM parts.chunks),
            (SELECT coalesce(max(value::BIGINT), 0) FROM parts.meta WHERE key = 'sorted_postings'),
            (SELECT count(*) FROM parts.postings)""",
    )
    unsorted = postings - sorted_rows
    return bool(dead > max(WORN_ROWS, WORN_SHARE * chunks) or unsorted > max(20 * WORN_ROWS, WORN_SHARE * sorted_rows))
