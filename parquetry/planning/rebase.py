"""Rebase of a run's rows when another run has published first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from parquetry.model import DocumentRow

Key = tuple[str, str]
"""(namespace, document_id)"""


def by_key(rows: Iterable[DocumentRow]) -> dict[Key, DocumentRow]:
    return {(row.namespace, row.document_id): row for row in rows}


def rebase(
    rows: Iterable[DocumentRow], base: Mapping[Key, DocumentRow], current: Mapping[Key, DocumentRow]
) -> list[DocumentRow]:
    """Return the rows that are still new after another run's publish.

    Args:
        rows: rows that this run was about to publish.
        base: current rows at planning time.
        current: current rows now.

    Returns:
        Rows of documents that the other run did not change, and of documents that this run read in a newer state.
    """
    kept = []
    for row in rows:
        key = (row.namespace, row.document_id)
        before, now = base.get(key), current.get(key)
        untouched = (before is None and now is None) or (
            before is not None and now is not None and before.sequence == now.sequence
        )
        if untouched or _is_newer(row, before, now):
            kept.append(row)
    return kept


def _is_newer(row: DocumentRow, before: DocumentRow | None, now: DocumentRow | None) -> bool:
    if row.removed:
        return False
    if before is not None and row.revision == before.revision:
        # Only properties were to change; the next run decides which content they apply to now.
        return False
    if now is None:
        return True
    same = (row.content_hash, row.fingerprint, row.status) == (now.content_hash, now.fingerprint, now.status)
    return not same and row.modified_at >= now.modified_at
