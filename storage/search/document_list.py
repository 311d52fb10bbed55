"""Pages of the documents that a caller may see, and their number: a list costs what its page holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.filters import Filters, permitted

ORDER = "created_at, document_id, namespace"
"""order of every list: it stays as it is when documents are added or changed"""


@dataclass(frozen=True, slots=True)
class DocumentTotals:
    """Size of what a caller may see."""

    documents: int
    chunks: int


def count_documents(connection: Connection, filters: Filters) -> DocumentTotals:
    """Count the documents that match, failed ones included, and their chunks.

    Args:
        connection: connection with an index as current database.
        filters: the caller and the conditions; those on metadata and `where` are not applied.
    """
    condition = permitted(filters)
    ((documents, chunks),) = tuples(
        connection,
        f"SELECT count(*), coalesce(sum(chunks), 0)::BIGINT FROM published WHERE {condition.sql}",
        list(condition.parameters),
    )
    return DocumentTotals(documents, chunks)


def page_of_documents(connection: Connection, filters: Filters, limit: int, offset: int) -> list[dict[str, Any]]:
    """Return the documents of a page, oldest first, as in `count_documents`.

    Args:
        connection: as in `count_documents`.
        filters: as in `count_documents`.
        limit: maximum number of documents.
        offset: number of documents before the page.
    """
    condition = permitted(filters)
    return rows(
        connection,
        f"SELECT * FROM published WHERE {condition.sql} ORDER BY {ORDER} LIMIT {limit:d} OFFSET {offset:d}",
        list(condition.parameters),
    )


def still_visible(
    connection: Connection, filters: Filters, documents: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return those of the documents of an earlier version that match in the present one as well.

    Args:
        connection: connection with the view `present` of `parquetry.storage.lake.snapshot_views.add_present`.
        filters: as in `count_documents`.
        documents: rows of the earlier version.
    """
    condition = permitted(filters)
    place = len(condition.parameters) + 1
    found = tuples(
        connection,
        f"SELECT namespace, document_id FROM present AS published WHERE ({condition.sql}) "
        f"AND document_id IN (SELECT unnest(${place}::VARCHAR[]))",
        [*condition.parameters, [row["document_id"] for row in documents]],
    )
    known = set(found)
    return [row for row in documents if (row["namespace"], row["document_id"]) in known]


def count_still_visible(connection: Connection, filters: Filters) -> int:
    """Count the documents of an earlier version that match there and in the present one.

    Args:
        connection: as in `still_visible`.
        filters: as in `count_documents`.
    """
    condition = permitted(filters)
    ((number,),) = tuples(
        connection,
        f"""SELECT count(*) FROM (SELECT namespace, document_id FROM published WHERE {condition.sql}) AS earlier
        SEMI JOIN (SELECT namespace, document_id FROM present AS published WHERE {condition.sql}) AS now
        USING (namespace, document_id)""",
        list(condition.parameters),
    )
    return int(number)


def find_document(connection: Connection, filters: Filters, document_id: str) -> dict[str, Any] | None:
    """Return a document by its id; None if there is none that matches.

    Args:
        connection: as in `count_documents`.
        filters: as in `count_documents`.
        document_id: id of the document.
    """
    condition = permitted(filters)
    place = len(condition.parameters) + 1
    found = rows(
        connection,
        f"SELECT * FROM published WHERE ({condition.sql}) AND document_id = ${place}",
        [*condition.parameters, document_id],
    )
    return found[0] if found else None


def documents_at(connection: Connection, filters: Filters, path: str, limit: int) -> list[dict[str, Any]]:
    """Return the documents with a path within their source; if there are none, those with this file name.

    Args:
        connection: as in `count_documents`.
        filters: as in `count_documents`.
        path: path or file name.
        limit: maximum number of documents.
    """
    condition = permitted(filters)
    place = len(condition.parameters) + 1
    for column in ("path", "filename"):
        found = rows(
            connection,
            f"SELECT * FROM published WHERE ({condition.sql}) AND {column} = ${place} ORDER BY {ORDER} LIMIT {limit:d}",
            [*condition.parameters, path],
        )
        if found:
            return found
    return []


def visible_namespaces(connection: Connection, filters: Filters) -> list[str]:
    """Return the namespaces of the documents that match.

    Args:
        connection: as in `count_documents`.
        filters: as in `count_documents`.
    """
    condition = permitted(filters)
    found = tuples(
        connection,
        f"SELECT DISTINCT namespace FROM published WHERE {condition.sql} ORDER BY namespace",
        list(condition.parameters),
    )
    return [name for (name,) in found]
