"""Publishes that need no source: an earlier version comes back, documents leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from knowledge.errors import PublishConflict, SettingsError, StorageError
from knowledge.model import DocumentRow
from knowledge.rebase import by_key
from knowledge.restore import restore
from knowledge.rows import Stamp, removed_row
from knowledge.select import is_named
from storage.current import current_rows
from storage.database import sql_list, tuples
from storage.lake import Lake, Snapshot
from storage.snapshot_views import connect_snapshot

ATTEMPTS = 8
"""publishes of others that a rewrite gives way to before it gives up"""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a rewrite published."""

    run_id: str
    version_before: int
    version: int
    rows: tuple[DocumentRow, ...]
    """as published; tombstones are marked `removed`"""


def restore_version(lake: Lake, version: int, stamp: Stamp, namespace: str | None = None) -> Rewrite:
    """Publish a version whose documents, texts and chunks are those of an earlier one.

    Args:
        lake: the corpus.
        version: as `history` shows.
        stamp: of this run.
        namespace: restore only this part of the corpus.

    Raises:
        SettingsError: there is no such version.
        StorageError: texts of that version are not there any more, or the publish failed; nothing was published.
    """
    then = by_key(_rows(lake.snapshot(version), namespace))

    def decide(snapshot: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        rows = restore(then, by_key(current), stamp)
        lost = _without_chunks(snapshot, rows)
        if lost:
            raise StorageError(
                f"version {version} cannot be restored: the chunks of {len(lost)} of its documents are not kept any "
                f"more ({', '.join(row.path for row in lost[:3])}{', ...' if len(lost) > 3 else ''})"
            )
        return rows

    return _rewrite(lake, "restore", decide, stamp, namespace)


def remove_documents(lake: Lake, names: Sequence[str], stamp: Stamp, namespace: str | None = None) -> Rewrite:
    """Publish a version without some documents.

    Args:
        lake: the corpus.
        names: ids, uris, paths, filenames, or globs over paths and filenames.
        stamp: of this run.
        namespace: remove only documents of this part of the corpus.

    Raises:
        SettingsError: a name means no document; nothing was removed.
        StorageError: the publish failed; nothing was published.
    """

    def decide(_: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        for name in names:
            if not any(is_named(row, name) for row in current):
                raise SettingsError(f"no document {name!r} in this corpus; `parquetry documents` lists them")
        chosen = [row for row in current if any(is_named(row, name) for name in names)]
        return [removed_row(row, stamp, "remove/asked-for: taken out by `parquetry remove`") for row in chosen]

    return _rewrite(lake, "remove", decide, stamp, namespace)


def _rewrite(
    lake: Lake,
    kind: str,
    decide: Callable[[Snapshot, Sequence[DocumentRow]], list[DocumentRow]],
    stamp: Stamp,
    namespace: str | None,
) -> Rewrite:
    started = perf_counter()
    for _ in range(ATTEMPTS):
        snapshot = lake.snapshot()
        rows = decide(snapshot, _rows(snapshot, namespace))
        try:
            version = lake.publish(snapshot, rows, stamp.run_id)
        except PublishConflict:
            continue
        rewrite = Rewrite(stamp.run_id, snapshot.version, version, tuple(rows))
        lake.record(_run_row(kind, rewrite, stamp, perf_counter() - started), [])
        return rewrite
    raise PublishConflict(f"other runs published {ATTEMPTS} times meanwhile; nothing was changed, try again")


def _run_row(kind: str, rewrite: Rewrite, stamp: Stamp, seconds: float) -> dict[str, object]:
    removed = sum(row.removed for row in rewrite.rows)
    return {
        "run_id": stamp.run_id,
        "kind": kind,
        "status": "completed",
        "started_at": stamp.at,
        "seconds": seconds,
        "namespaces": sorted({row.namespace for row in rewrite.rows}),
        "version_before": rewrite.version_before,
        "version_after": rewrite.version,
        "changed": len(rewrite.rows) - removed,
        "removed": removed,
    }


def _rows(snapshot: Snapshot, namespace: str | None) -> list[DocumentRow]:
    return current_rows(snapshot, None if namespace is None else (namespace,))


def _without_chunks(snapshot: Snapshot, rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    wanted = {row.revision: row for row in rows if row.revision and not row.removed}
    if not wanted:
        return []
    revisions = sql_list(map(str, wanted))
    with connect_snapshot(snapshot) as connection:
        found = tuples(
            connection,
            f"SELECT DISTINCT revision FROM all_chunks WHERE list_contains({revisions}::BIGINT[], revision)",
        )
    kept = {revision for (revision,) in found}
    return [row for revision, row in wanted.items() if revision not in kept]
