"""Lists of documents for people: sorted, narrowed by name and status, and summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.filters import Filters, permitted

Order = Literal["name", "added", "changed", "size", "chunks", "status"]
ORDERS: tuple[Order, ...] = get_args(Order)
DocumentStatus = Literal["indexed", "failed", "skipped"]
STATUSES: tuple[DocumentStatus, ...] = get_args(DocumentStatus)
_KEYS: Mapping[Order, str] = {
    "name": "lower(filename)",
    "added": "created_at",
    "changed": "modified_at",
    "size": "size",
    "chunks": "chunks",
    "status": "status",
}
_COLUMNS = (
    "document_id, namespace, source, uri, path, filename, title, media_type, size, status, error, chunks, created_at, "
    "modified_at, indexed_at, visibility, tags, metadata"
)
_MOST_FACETS = 200
"""values of a column that are offered for choosing"""


@dataclass(frozen=True, slots=True)
class Browsing:
    """The documents that a list shows, and their order."""

    filters: Filters
    """the caller and the conditions; those on metadata and `where` are not applied"""
    contains: str | None = None
    """part of the file name, the title or the path, in any case"""
    status: DocumentStatus | None = None
    order: Order = "added"
    descending: bool = True


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """The documents of a source that a caller may see."""

    namespace: str
    source: str
    documents: int
    indexed: int
    failed: int
    skipped: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Facets:
    """Values that a caller may choose from, each column on its own; at most some hundreds."""

    namespaces: tuple[str, ...]
    sources: tuple[str, ...]
    media_types: tuple[str, ...]


def browse(
    connection: Connection, asked: Browsing, limit: int, offset: int, total: int | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of documents and the number of documents of the whole list.

    Args:
        connection: connection with an index as current database.
        asked: the documents and their order.
        limit: maximum number of documents.
        offset: number of documents before the page.
        total: number of documents of the whole list, if it is known.
    """
    condition, values = _condition(asked)
    if total is None and offset:
        total = count_browsed(connection, asked)
    size = limit if total is None else max(0, min(limit, total - offset))
    # The last pages are the first ones from the end: rows before a page are sorted, too.
    from_end = total is not None and offset > total // 2
    backwards = asked.descending != from_end
    skipped = total - offset - size if total is not None and from_end else offset
    # All columns are read of the rows of the page alone.
    chosen = tuples(
        connection,
        f"SELECT rowid, {'count(*) OVER ()' if total is None else '0'} FROM parts.documents WHERE {condition} "
        f"ORDER BY {_KEYS[asked.order]} {'DESC' if backwards else 'ASC'} NULLS {'FIRST' if from_end else 'LAST'}, "
        f"document_id {'DESC' if from_end else 'ASC'}, namespace {'DESC' if from_end else 'ASC'} "
        f"LIMIT {size:d} OFFSET {max(0, skipped):d}",
        values,
    )
    numbers = [number for number, _ in chosen]
    if total is None:
        total = int(chosen[0][1]) if chosen else 0
    found = tuples(
        connection,
        f"SELECT rowid, {_COLUMNS} FROM parts.documents WHERE rowid IN (SELECT unnest($1::BIGINT[]))",
        [numbers],
    )
    by_number = {number: dict(zip(_COLUMNS.split(", "), row, strict=True)) for number, *row in found}
    return [by_number[number] for number in (numbers[::-1] if from_end else numbers)], total


def count_browsed(connection: Connection, asked: Browsing) -> int:
    """Return the number of documents of a whole list.

    Args:
        connection: as in `browse`.
        asked: as in `browse`; the order makes no difference.
    """
    condition, values = _condition(asked)
    ((total,),) = tuples(connection, f"SELECT count(*) FROM published WHERE {condition}", values)
    return int(total)


def matching_ids(connection: Connection, asked: Browsing, most: int) -> list[str]:
    """Return the ids of all documents of a list, at most a number of them.

    Args:
        connection: as in `browse`.
        asked: the documents and their order.
        most: maximum number.
    """
    condition, values = _condition(asked)
    found = tuples(connection, f"SELECT document_id FROM published WHERE {condition} LIMIT {most:d}", values)
    return [str(value) for (value,) in found]


def rows_of_ids(connection: Connection, filters: Filters, document_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the documents with some ids that match, by name.

    Args:
        connection: as in `browse`.
        filters: as in `summarise`.
        document_ids: the ids.
    """
    condition = permitted(filters)
    place = len(condition.parameters) + 1
    return rows(
        connection,
        f"SELECT {_COLUMNS}, etag, org_id, user_id FROM published WHERE ({condition.sql}) "
        f"AND document_id IN (SELECT unnest(${place}::VARCHAR[])) ORDER BY lower(filename), document_id",
        [*condition.parameters, list(document_ids)],
    )


def _condition(asked: Browsing) -> tuple[str, list[Any]]:
    condition = permitted(asked.filters)
    sql, values = condition.sql, list(condition.parameters)
    if asked.contains is not None:
        values.append(asked.contains)
        part = f"lower(${len(values)})"
        named = " OR ".join(f"contains(lower({column}), {part})" for column in ("filename", "title", "path"))
        sql += f" AND ({named})"
    if asked.status is not None:
        values.append(asked.status)
        sql += f" AND status = ${len(values)}"
    return sql, values


def summarise(connection: Connection, filters: Filters) -> list[SourceSummary]:
    """Return the sources with documents that match, by namespace and name.

    Args:
        connection: as in `browse`.
        filters: the caller and the conditions; those on metadata and `where` are not applied.
    """
    condition = permitted(filters)
    found = rows(
        connection,
        f"""SELECT namespace, source, count(*) AS documents, count(*) FILTER (status = 'indexed') AS indexed,
            count(*) FILTER (status = 'failed') AS failed, count(*) FILTER (status = 'skipped') AS skipped,
            coalesce(sum(chunks), 0)::BIGINT AS chunks
        FROM published WHERE {condition.sql} GROUP BY namespace, source ORDER BY namespace, source""",
        list(condition.parameters),
    )
    return [SourceSummary(**row) for row in found]


def failures_by_reason(connection: Connection, filters: Filters) -> list[tuple[str, int]]:
    """Return `stage/reason` and number of the matching documents without an index, most frequent first.

    Args:
        connection: as in `browse`.
        filters: as in `summarise`.
    """
    condition = permitted(filters)
    found = tuples(
        connection,
        f"""SELECT split_part(error, ': ', 1) AS reason, count(*) AS n FROM published
        WHERE {condition.sql} AND status <> 'indexed' GROUP BY reason ORDER BY n DESC, reason""",
        list(condition.parameters),
    )
    return [(str(reason), int(number)) for reason, number in found]


def facets(connection: Connection, filters: Filters) -> Facets:
    """Return the namespaces, sources and media types of the documents that match.

    Args:
        connection: as in `browse`.
        filters: as in `summarise`.
    """
    condition = permitted(filters)

    def values(column: str) -> tuple[str, ...]:
        found = tuples(
            connection,
            f"SELECT DISTINCT {column} FROM published WHERE {condition.sql} AND {column} IS NOT NULL "
            f"ORDER BY {column} LIMIT {_MOST_FACETS}",
            list(condition.parameters),
        )
        return tuple(str(value) for (value,) in found)

    return Facets(values("namespace"), values("source"), values("media_type"))
