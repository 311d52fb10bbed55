"""Lists of documents from an analysis, as one caller may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from parquetry.storage.analysis.folder import AnalysisFile
from parquetry.storage.database import Connection, rows, sql_string, tuples
from parquetry.storage.search.filters import Filters, permitted

Fault = Literal["incomplete", "little-text", "garbled", "scanned"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
Alike = Literal["duplicates", "near-duplicates"]
ALIKE: tuple[Alike, ...] = get_args(Alike)
_CONDITIONS: Mapping[Fault, str] = {
    "incomplete": "coalesce(a.pages_unread, 0) > 0 OR coalesce(a.cut, 0) > 0",
    "little-text": "a.little_text",
    "garbled": "coalesce(a.unmapped, 0) > 0",
    "scanned": "coalesce(a.pages_ocr, 0) > 0 OR coalesce(a.pages_without_text, 0) > 0",
}
_ORDERS: Mapping[Fault, str] = {
    "incomplete": "a.known_loss DESC",
    "little-text": "a.characters / greatest(coalesce(a.pages, 1), 1)",
    "garbled": "a.unmapped / greatest(a.characters, 1) DESC",
    "scanned": "coalesce(a.ocr_confidence, 0)",
}
_GROUPS: Mapping[Alike, str] = {"duplicates": "a.content_hash", "near-duplicates": "a.near"}
_SHOWN = (
    "d.document_id, d.namespace, d.source, d.uri, d.path, d.filename, d.title, d.media_type, d.size, d.status, "
    "d.error, d.chunks, d.created_at, d.modified_at, d.indexed_at, d.visibility, d.tags, d.metadata"
)
_FACTS = (
    "a.characters, a.known_loss, a.pages, a.pages_without_text, a.pages_unread, a.pages_ocr, a.ocr_confidence, "
    "a.unmapped, a.cut, a.near_share"
)

Places = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def analyzed(connection: Connection, file: AnalysisFile, filters: Filters) -> dict[str, int]:
    """Return how many documents each list has, how many were analyzed, and how many there are.

    A document that changed since the analysis is in no list.

    Args:
        connection: connection with an index as current database.
        file: the analysis.
        filters: the caller and the conditions; those on metadata and `where` are not applied.
    """
    relation, values = _documents(file, filters)
    counts = [f"count(*) FILTER ({condition})" for condition in _CONDITIONS.values()]
    counts += [
        f"(SELECT coalesce(sum(n), 0)::BIGINT FROM (SELECT count(*) AS n FROM {relation} "
        f"WHERE {column} IS NOT NULL GROUP BY {column} HAVING count(*) > 1))"
        for column in _GROUPS.values()
    ]
    names = (*FAULTS, *ALIKE, "analyzed")
    (found,) = tuples(connection, f"SELECT {', '.join(counts)}, count(*) FROM {relation}", values)
    return {name: int(number) for name, number in zip(names, found, strict=True)}


def faulty(
    connection: Connection, file: AnalysisFile, filters: Filters, fault: Fault, limit: int, offset: int
) -> list[dict[str, Any]]:
    """Return a page of the documents with a fault, the worst first, with the facts on each.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`.
        fault: which list.
        limit: maximum number of documents.
        offset: number of documents before the page.
    """
    relation, values = _documents(file, filters)
    return rows(
        connection,
        f"SELECT {_SHOWN}, {_FACTS} FROM {relation} WHERE {_CONDITIONS[fault]} "
        f"ORDER BY {_ORDERS[fault]}, d.document_id, d.namespace LIMIT {limit:d} OFFSET {offset:d}",
        values,
    )


def alike(
    connection: Connection, file: AnalysisFile, filters: Filters, kind: Alike, limit: int, offset: int
) -> list[dict[str, Any]]:
    """Return a page of documents that are like others, group by group, the largest group first; `together` names it.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`; others than these are in no group.
        kind: the same bytes, or nearly the same text.
        limit: maximum number of documents.
        offset: number of documents before the page.
    """
    relation, values = _documents(file, filters)
    column = _GROUPS[kind]
    return rows(
        connection,
        f"""SELECT * FROM (
            SELECT {_SHOWN}, {_FACTS}, {column}::VARCHAR AS together, count(*) OVER (PARTITION BY {column}) AS members
            FROM {relation} WHERE {column} IS NOT NULL
        ) WHERE members > 1 ORDER BY members DESC, together, created_at, document_id
        LIMIT {limit:d} OFFSET {offset:d}""",
        values,
    )


def placed(connection: Connection, file: AnalysisFile, filters: Filters) -> dict[str, np.ndarray[Any, Any]]:
    """Return the documents on the map: `document_id`, `x`, `y`, `cluster`, `source`, `media_type`, an array each.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`.
    """
    relation, values = _documents(file, filters)
    statement = (
        f"SELECT d.document_id, a.x, a.y, a.cluster, d.source, coalesce(d.media_type, '') AS media_type "
        f"FROM {relation} WHERE a.x IS NOT NULL ORDER BY d.document_id, d.namespace"
    )
    found: dict[str, np.ndarray[Any, Any]] = connection.execute(statement, values).fetchnumpy()
    return found


def within(
    connection: Connection, file: AnalysisFile, filters: Filters, area: tuple[float, float, float, float], limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return documents in a rectangle of the map, by name, and their number.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`.
        area: left, top, right and bottom, 0 to 1.
        limit: maximum number of documents.
    """
    return _chosen(
        connection,
        file,
        filters,
        "a.x BETWEEN {} AND {} AND a.y BETWEEN {} AND {}",
        (area[0], area[2], area[1], area[3]),
        limit,
    )


def in_cluster(
    connection: Connection, file: AnalysisFile, filters: Filters, cluster: int, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Return documents of a cluster, by name, and their number.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`.
        cluster: number of the cluster, 0-based.
        limit: maximum number of documents.
    """
    return _chosen(connection, file, filters, "a.cluster = {}", (cluster,), limit)


def names_of_clusters(connection: Connection, file: AnalysisFile, filters: Filters) -> list[tuple[int, int, list[str]]]:
    """Return number, size and some names of the documents of each cluster, the largest first.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`; a cluster is named by these documents alone.
    """
    relation, values = _documents(file, filters)
    found = tuples(
        connection,
        f"SELECT a.cluster, count(*) AS n, list(coalesce(nullif(d.title, ''), d.filename, '')) "
        f"FROM {relation} WHERE a.cluster IS NOT NULL GROUP BY a.cluster ORDER BY n DESC, a.cluster",
        values,
    )
    return [(int(cluster), int(number), [str(name) for name in names]) for cluster, number, names in found]


def _chosen(
    connection: Connection, file: AnalysisFile, filters: Filters, condition: str, values: tuple[Any, ...], limit: int
) -> tuple[list[dict[str, Any]], int]:
    relation, bound = _documents(file, filters)
    places = [f"${len(bound) + number}" for number in range(1, len(values) + 1)]
    found = rows(
        connection,
        f"SELECT {_SHOWN}, count(*) OVER () AS everything FROM {relation} WHERE {condition.format(*places)} "
        f"ORDER BY lower(d.filename), d.document_id LIMIT {limit:d}",
        [*bound, *values],
    )
    return found, int(found[0]["everything"]) if found else 0


def _documents(file: AnalysisFile, filters: Filters) -> tuple[str, list[Any]]:
    """Return a relation of the visible documents, `d`, with the facts of the analysis, `a`, and its parameters."""
    condition = permitted(filters)
    relation = (
        f"(SELECT * FROM published WHERE {condition.sql}) AS d "
        f"JOIN read_parquet({sql_string(str(file.path))}) AS a USING (document_id, namespace, revision)"
    )
    return relation, list(condition.parameters)
