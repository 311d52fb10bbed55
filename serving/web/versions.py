"""The versions of a corpus: their list, what one of them changed, and what restoring it would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from parquetry.serving.search.run_rows import counts_of
from parquetry.serving.web.runs import name_of
from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.lake.history import Publish
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_ENTRY
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import Retained
from parquetry.storage.lake.snapshot_views import add_differing

CHANGES_SHOWN = 50
"""changed documents that a version names"""
_STAMPS = "sequence, run_id, indexed_at"
"""columns of a row that tell its publish, and nothing of the document"""


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """A version."""

    number: int
    at: datetime
    run_id: str
    """empty for the creation of the corpus"""
    kind: str
    """kind of its run, in words"""
    outcome: str
    """counts of its run in words"""
    rows: int
    """rows of `documents` that it wrote"""
    tags: tuple[str, ...]
    kept: bool
    """True if it can be restored"""
    current: bool


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document that a version changed."""

    id: str
    name: str
    change: str
    """Added, Changed or Removed"""
    status: str
    chunks: int


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """The changes that restoring a version would make, by what they concern: documents, then entries."""

    back: Mapping[str, int]
    """documents and entries that return, or return to what they were"""
    gone: Mapping[str, int]
    """documents and entries that are removed, because the version has none of them"""

    @property
    def is_empty(self) -> bool:
        """True if nothing would change."""
        return not any((*self.back.values(), *self.gone.values()))


def listed_versions(
    publishes: Sequence[Publish], runs: Mapping[str, Mapping[str, Any]], kept: Retained, current: int
) -> list[ListedVersion]:
    """Return versions as a page lists them. Pure.

    Args:
        publishes: history, the newest first.
        runs: rows of `runs` by id; those of runs that were not recorded are missing.
        kept: tags, and what is kept.
        current: number of the newest version.
    """
    return [_listed(each, runs.get(each.run_id or ""), kept, current) for each in publishes]


def _listed(publish: Publish, run: Mapping[str, Any] | None, kept: Retained, current: int) -> ListedVersion:
    unrecorded = "Unrecorded run" if publish.run_id else "Creation"
    return ListedVersion(
        publish.version,
        publish.at,
        publish.run_id or "",
        unrecorded if run is None else name_of(run["kind"]),
        "" if run is None else counts_of(run),
        publish.documents,
        tuple(kept.names_of(publish.version)),
        kept.keeps(publish.version),
        publish.version == current,
    )


def changed_documents(connection: Connection, run_id: str) -> tuple[list[ChangedDocument], int]:
    """Return the first documents that a run changed, and their number.

    Args:
        connection: connection of `run_views`.
        run_id: id of the run that published.
    """
    chosen = f"run_id = $1 AND {IS_DOCUMENT}"
    found = rows(
        connection,
        f"""WITH now AS MATERIALIZED (
            SELECT document_id, filename, path, removed, status, chunks, sequence
            FROM document_history WHERE {chosen} ORDER BY removed, path LIMIT {CHANGES_SHOWN}
        ), first AS (
            SELECT document_id, min(sequence) AS first FROM document_history
            WHERE document_id IN (SELECT document_id FROM now) GROUP BY document_id
        ) SELECT now.* EXCLUDE (sequence), first < sequence AS known
        FROM now JOIN first USING (document_id) ORDER BY removed, path""",
        [run_id],
    )
    ((total,),) = tuples(connection, f"SELECT count(*) FROM document_history WHERE {chosen}", [run_id])
    return [_changed(row) for row in found], int(total)


def _changed(row: Mapping[str, Any]) -> ChangedDocument:
    change = "Removed" if row["removed"] else "Changed" if row["known"] else "Added"
    return ChangedDocument(
        row["document_id"], row["filename"] or row["path"], change, row["status"], row["chunks"] or 0
    )


def restore_preview(connection: Connection, lake: Lake, version: int) -> RestorePreview:
    """Compare a version with the newest one.

    Args:
        connection: connection of `run_views`.
        lake: the corpus.
        version: number of the version.

    Raises:
        SettingsError: there is no such version, or it is not kept any more.
        StorageError: it cannot be read.
    """
    then, now = lake.snapshot(version, needed=["documents"]), lake.snapshot(needed=["documents"])
    add_differing(connection, then, now)
    return RestorePreview(_counted(connection, _BACK), _counted(connection, _GONE))


_BACK = f'SELECT * EXCLUDE ({_STAMPS}) FROM "then" EXCEPT SELECT * EXCLUDE ({_STAMPS}) FROM "now"'
_GONE = 'SELECT * FROM "now" ANTI JOIN "then" USING (namespace, document_id)'


def _counted(connection: Connection, statement: str) -> dict[str, int]:
    kinds = f"count(*) FILTER ({IS_DOCUMENT}), count(*) FILTER ({IS_ENTRY})"
    ((documents, entries),) = tuples(connection, f"SELECT {kinds} FROM ({statement})")
    return {"documents": int(documents), "entries": int(entries)}
