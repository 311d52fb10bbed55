"""Namespaces with their sizes, and their documents in pages that begin behind a given document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.filters import Filters, permitted

_FLOAT_BYTES = 4
_INDEXED = "status = 'indexed' AND chunks > 0"


@dataclass(frozen=True, slots=True)
class NamespaceTotals:
    """Size of what a caller sees of a namespace."""

    namespace: str
    indexed: int
    """number of documents that can be found"""
    failed: int
    """number of the others"""
    bytes: int
    """bytes of texts and vectors, about"""
    created_at: datetime
    """time of the oldest document"""
    indexed_at: datetime
    """time of the last change"""


def namespace_totals(connection: Connection, filters: Filters) -> list[NamespaceTotals]:
    """Return the namespaces with documents that match, and their sizes.

    Args:
        connection: connection with an index as current database.
        filters: the caller and the conditions; those on metadata and `where` are not applied.
    """
    condition = permitted(filters)
    found = tuples(
        connection,
        f"""SELECT namespace, count(*) FILTER ({_INDEXED}), count(*) FILTER (NOT ({_INDEXED})),
        coalesce(sum({_bytes(connection)}), 0)::BIGINT, min(created_at), max(indexed_at)
        FROM published WHERE {condition.sql} GROUP BY namespace ORDER BY namespace""",
        list(condition.parameters),
    )
    return [NamespaceTotals(*row) for row in found]


def index_bytes_of(connection: Connection, document_ids: Sequence[str]) -> dict[str, int]:
    """Return the bytes of text and vectors of documents, about, by their ids."""
    found = tuples(
        connection,
        f"""SELECT document_id, {_bytes(connection)} FROM published
        WHERE document_id IN (SELECT unnest($1::VARCHAR[]))""",
        [list(document_ids)],
    )
    return dict(found)


def page_by_time(
    connection: Connection,
    filters: Filters,
    limit: int,
    *,
    newest_first: bool,
    indexed: bool | None = None,
    after: tuple[datetime, str] | None = None,
    before: tuple[datetime, str] | None = None,
) -> list[dict[str, Any]]:
    """Return documents in the order in which they came, as in `namespace_totals`, with `bytes` of text and vectors.

    Args:
        connection: as in `namespace_totals`.
        filters: as in `namespace_totals`.
        limit: maximum number.
        newest_first: order.
        indexed: only documents that can be found, or only others.
        after: time and id of a document: only those behind it, in the order asked for.
        before: time and id of a document: only those in front of it, the last of them.
    """
    condition = permitted(filters)
    where, values = [condition.sql], list(condition.parameters)
    if indexed is not None:
        where.append(_INDEXED if indexed else f"NOT ({_INDEXED})")
    for bound, beyond in ((after, newest_first), (before, not newest_first)):
        if bound is not None:
            place = len(values) + 1
            where.append(f"(created_at, document_id) {'<' if beyond else '>'} (${place}, ${place + 1})")
            values += bound
    # The page in front of a document is read from there backwards.
    way = "DESC" if newest_first == (before is None) else "ASC"
    found = rows(
        connection,
        f"""SELECT *, {_bytes(connection)} AS bytes FROM published WHERE {" AND ".join(where)}
        ORDER BY created_at {way}, document_id {way} LIMIT {limit:d}""",
        values,
    )
    return found if before is None else found[::-1]


def _bytes(connection: Connection) -> str:
    """Return SQL of the bytes of text and vectors of a document."""
    spaces = tuples(connection, "SELECT embedder, dimension FROM parts.spaces")
    whens = "".join(f" WHEN '{_quoted(name)}' THEN {dimension:d}" for name, dimension in spaces)
    dimension = f"CASE embedder{whens} ELSE 0 END" if spaces else "0"
    return f"(characters + {_FLOAT_BYTES} * chunks * {dimension})::BIGINT"


def _quoted(name: str) -> str:
    return name.replace("'", "''")
