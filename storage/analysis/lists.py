"""Lists of documents from an analysis, as one caller may see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from parquetry.storage.analysis.folder import AnalysisFile
from parquetry.storage.database import Connection, reading, rows, sql_string, tuples
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
MOST_NAMES = 500
"""names of documents that stand for those of a cluster"""
_GROUPS: Mapping[Alike, str] = {"duplicates": "content_hash", "near-duplicates": "near"}
_SHOWN = (
    "d.document_id, d.namespace, d.source, d.uri, d.path, d.filename, d.title, d.media_type, d.size, d.status, "
    "d.error, d.chunks, d.created_at, d.modified_at, d.indexed_at, d.visibility, d.tags, d.metadata"
)
_FACTS = (
    "a.characters, a.known_loss, a.pages, a.pages_without_text, a.pages_unread, a.pages_ocr, a.ocr_confidence, "
    "a.unmapped, a.cut, a.near_share"
)

Column = np.ndarray[tuple[int], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column of which each value is kept once."""

    values: Sequence[str | None]
    numbers: Column
    """place in `values` of each row"""


@dataclass(frozen=True, slots=True)
class PlacedDocuments:
    """Documents on the map, by column."""

    ids: Column
    """16 bytes each"""
    x: Column
    """0 to 1, as `y`"""
    y: Column
    cluster: Column
    """0-based"""
    source: Numbered
    media_type: Numbered


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
    facts = f"SELECT {', '.join(counts)}, count(*) FROM {relation}"
    (found,) = tuples(connection, facts, values)
    numbers = dict(zip((*FAULTS, "analyzed"), found, strict=True))
    for name, column in _GROUPS.items():
        several, values = _documents(file, filters, alike_by=column)
        alike = (
            f"SELECT coalesce(sum(n), 0)::BIGINT "
            f"FROM (SELECT count(*) AS n FROM {several} GROUP BY a.{column} HAVING count(*) > 1)"
        )
        ((numbers[name],),) = tuples(connection, alike, values)
    return {name: int(number) for name, number in numbers.items()}


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
    found = tuples(
        connection,
        f"SELECT d.place, a.file_row_number FROM {relation} WHERE {_CONDITIONS[fault]} "
        f"ORDER BY {_ORDERS[fault]}, d.document_id, d.namespace LIMIT {limit:d} OFFSET {offset:d}",
        values,
    )
    return _shown(connection, file, found)


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
    column = _GROUPS[kind]
    relation, values = _documents(file, filters, alike_by=column)
    found = tuples(
        connection,
        f"""SELECT place, fact, together, members FROM (
            SELECT d.place, a.file_row_number AS fact, a.{column}::VARCHAR AS together, d.created_at, d.document_id,
                count(*) OVER (PARTITION BY a.{column}) AS members
            FROM {relation}
        ) WHERE members > 1 ORDER BY members DESC, together, created_at, document_id
        LIMIT {limit:d} OFFSET {offset:d}""",
        values,
    )
    shown = _shown(connection, file, [(place, fact) for place, fact, _, _ in found])
    return [
        {**row, "together": together, "members": members}
        for row, (_, _, together, members) in zip(shown, found, strict=True)
    ]


def placed(connection: Connection, file: AnalysisFile, filters: Filters) -> PlacedDocuments:
    """Return the documents on the map.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`.
    """
    relation, values = _documents(file, filters)
    columns = "a.revision, d.document_id, a.x, a.y, a.cluster, d.source, d.media_type"
    with reading():
        statement = f"SELECT {columns} FROM {relation} WHERE a.x IS NOT NULL"
        found = connection.sql(statement, params=values).to_arrow_table()
    # Revisions are hashes: in their order, no source covers another.
    order = np.argsort(found["revision"].to_numpy(), kind="stable")
    hexadecimal = "".join(found["document_id"].to_pylist()).replace("-", "")
    ids = np.frombuffer(bytes.fromhex(hexadecimal), "V16")[order]
    x, y, cluster = (found[name].to_numpy()[order] for name in ("x", "y", "cluster"))
    source, media_type = (_numbered(found[name], order) for name in ("source", "media_type"))
    return PlacedDocuments(ids, x, y, cluster, source, media_type)


def _numbered(column: pa.ChunkedArray, order: Column) -> Numbered:
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return Numbered(encoded.dictionary.to_pylist(), encoded.indices.to_numpy()[order])


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
    """Return number, size and at most `MOST_NAMES` names of documents of each cluster, the largest first.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        filters: as in `analyzed`; a cluster is named by these documents alone.
    """
    relation, values = _documents(file, filters)
    named = "coalesce(nullif(d.title, ''), d.filename, '')"
    found = tuples(
        connection,
        f"SELECT a.cluster, count(*) AS n, arg_max({named}, hash(a.revision), {MOST_NAMES}) "
        f"FROM {relation} WHERE a.cluster IS NOT NULL GROUP BY a.cluster ORDER BY n DESC, a.cluster",
        values,
    )
    return [(int(cluster), int(number), [str(name) for name in names]) for cluster, number, names in found]


def _chosen(
    connection: Connection, file: AnalysisFile, filters: Filters, condition: str, values: tuple[Any, ...], limit: int
) -> tuple[list[dict[str, Any]], int]:
    relation, bound = _documents(file, filters)
    places = [f"${len(bound) + number}" for number in range(1, len(values) + 1)]
    found = tuples(
        connection,
        f"SELECT d.place, a.file_row_number, count(*) OVER () FROM {relation} WHERE {condition.format(*places)} "
        f"ORDER BY lower(d.filename), d.document_id LIMIT {limit:d}",
        [*bound, *values],
    )
    return _shown(connection, file, [(place, number) for place, number, _ in found]), int(found[0][2]) if found else 0


def _documents(file: AnalysisFile, filters: Filters, *, alike_by: str | None = None) -> tuple[str, list[Any]]:
    """Return a relation and its parameters: the visible documents, `d`, and the facts of the analysis, `a`.

    A revision is one write of one document, so that nothing else has to be compared.

    Args:
        file: the analysis.
        filters: as in `analyzed`.
        alike_by: column; only documents whose value occurs several times in the whole analysis.
    """
    condition, facts = permitted(filters), _facts_of(file)
    if alike_by is not None:
        several = f"SELECT {alike_by} FROM {facts} WHERE {alike_by} IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
        facts = f"(FROM {facts} WHERE {alike_by} IN ({several}))"
    relation = (
        f"(SELECT rowid AS place, * FROM parts.documents WHERE {condition.sql}) AS d JOIN {facts} AS a USING (revision)"
    )
    return relation, list(condition.parameters)


def _facts_of(file: AnalysisFile) -> str:
    return f"read_parquet({sql_string(str(file.path))}, file_row_number = true)"


def _shown(connection: Connection, file: AnalysisFile, chosen: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return documents with their facts, in order: all columns are read of those that are shown alone.

    Args:
        connection: as in `analyzed`.
        file: the analysis.
        chosen: rows of the index and of the file.
    """
    found = rows(
        connection,
        f"SELECT d.rowid AS place, {_SHOWN}, {_FACTS} "
        f"FROM (SELECT rowid, * FROM parts.documents WHERE rowid IN (SELECT unnest($1::BIGINT[]))) AS d "
        f"JOIN (FROM {_facts_of(file)} WHERE file_row_number IN (SELECT unnest($2::BIGINT[]))) AS a USING (revision)",
        [[place for place, _ in chosen], [number for _, number in chosen]],
    )
    by_place = {row.pop("place"): row for row in found}
    return [by_place[place] for place, _ in chosen]
