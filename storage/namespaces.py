"""The independent parts of a corpus: what each holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from storage.database import rows
from storage.lake import Snapshot
from storage.snapshot_views import connect_snapshot


@dataclass(frozen=True, slots=True)
class Namespace:
    """One part of a corpus."""

    namespace: str
    documents: int
    indexed: int
    """documents that a search can find"""
    chunks: int
    public: int
    """documents that everybody may see"""
    organization: int
    """documents that members of an organization may see"""
    individual: int
    """documents that one user may see"""
    embedders: tuple[str, ...]
    """ids of the models that its chunks were embedded with"""
    published_at: datetime
    """of the newest row, UTC"""


def namespaces_of(snapshot: Snapshot) -> list[Namespace]:
    """The namespaces that hold documents, by name.

    Args:
        snapshot: of the corpus.

    Raises:
        StorageError: it cannot be read.
    """
    with connect_snapshot(snapshot) as connection:
        found = rows(
            connection,
            """SELECT namespace, count(*) AS documents, count(*) FILTER (revision <> 0) AS indexed,
                sum(chunks)::BIGINT AS chunks, count(*) FILTER (visibility = 'public') AS public,
                count(*) FILTER (visibility = 'organization') AS organization,
                count(*) FILTER (visibility = 'individual') AS individual,
                coalesce(list_sort(list(DISTINCT embedder) FILTER (revision <> 0)), []) AS embedders, published_at
            FROM documents
            JOIN (SELECT namespace, max(indexed_at) AS published_at FROM document_history GROUP BY ALL)
                USING (namespace)
            GROUP BY namespace, published_at ORDER BY namespace""",
        )
    return [Namespace(**{**row, "embedders": tuple(row["embedders"])}) for row in found]
