"""The namespaces of a corpus and their content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from parquetry.storage.database import rows
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_ENTRY
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.snapshot_views import connect_snapshot


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace: an independent part of a corpus."""

    namespace: str
    documents: int
    indexed: int
    """number of documents that a search can find"""
    chunks: int
    """number of chunks of documents"""
    entries: int
    """number of entries from chat sessions"""
    public: int
    """number of documents that everybody may see"""
    organization: int
    """number of documents that members of an organization may see"""
    individual: int
    """number of documents that one user may see"""
    embedders: tuple[str, ...]
    """ids of the embedders of its chunks"""
    published_at: datetime
    """time of the newest row, UTC"""


def namespaces_of(snapshot: Snapshot) -> list[Namespace]:
    """Return the non-empty namespaces, by name.

    Args:
        snapshot: snapshot of the corpus.

    Raises:
        StorageError: the corpus cannot be read.
    """
    with connect_snapshot(snapshot) as connection:
        found = rows(
            connection,
            f"""SELECT namespace, count(*) FILTER (of_documents) AS documents,
                count(*) FILTER (of_documents AND revision <> 0) AS indexed,
                coalesce(sum(chunks) FILTER (of_documents), 0)::BIGINT AS chunks,
                count(*) FILTER ({IS_ENTRY}) AS entries,
                count(*) FILTER (of_documents AND visibility = 'public') AS public,
                count(*) FILTER (of_documents AND visibility = 'organization') AS organization,
                count(*) FILTER (of_documents AND visibility = 'individual') AS individual,
                coalesce(list_sort(list(DISTINCT embedder) FILTER (revision <> 0)), []) AS embedders, published_at
            FROM (SELECT *, {IS_DOCUMENT} AS of_documents FROM published)
            JOIN (SELECT namespace, max(indexed_at) AS published_at FROM document_history GROUP BY ALL)
                USING (namespace)
            GROUP BY namespace, published_at ORDER BY namespace""",
        )
    return [Namespace(**{**row, "embedders": tuple(row["embedders"])}) for row in found]
