"""The versions of one document."""

from __future__ import annotations

from typing import Any

from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.filters import Filters, permitted

MOST_VERSIONS = 100
"""rows of a document that a list shows, the newest"""


def versions_of(connection: Connection, filters: Filters, document_id: str) -> list[dict[str, Any]]:
    """Return the rows of a document that were published, newest first; those of times when it was hidden are left out.

    Args:
        connection: connection with views on the Parquet files of a corpus.
        filters: the caller and the namespace; applied to each row as it was.
        document_id: id of the document.
    """
    condition = permitted(filters)
    return rows(
        connection,
        f"""SELECT sequence, revision, removed, status, error, path, filename, title, size, characters, chunks,
            content_hash, visibility, org_id, user_id, tags, metadata, indexed_at, run_id
        FROM document_history WHERE document_id = ${len(condition.parameters) + 1} AND ({condition.sql})
        ORDER BY sequence DESC LIMIT {MOST_VERSIONS}""",
        [*condition.parameters, document_id],
    )


def text_of_revision(connection: Connection, revision: int, most: int) -> str | None:
    """Return the text that a revision of a document has; None if it is not kept any more.

    Args:
        connection: as in `versions_of`.
        revision: a revision that `versions_of` returned.
        most: maximum number of characters, from the start.
    """
    found = tuples(connection, f"SELECT left(text, {most:d}) FROM all_texts WHERE revision = $1 LIMIT 1", [revision])
    return str(found[0][0] or "") if found else None
