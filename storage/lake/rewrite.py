"""Publishes that need no source: restore an earlier version, remove documents or whole namespaces."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from time import perf_counter

from parquetry.errors import PublishConflict, SettingsError, StorageError
from parquetry.model import ENTRY_TYPE, KNOWLEDGE_TYPES, DocumentRow
from parquetry.planning.match import named
from parquetry.planning.rebase import Key, by_key
from parquetry.planning.restore import restore
from parquetry.planning.rows import RunStamp, removed_row
from parquetry.sessions.ledger.undo import rewritten
from parquetry.sessions.model import Decision
from parquetry.storage.database import sql_list, tuples
from parquetry.storage.lake.current import Content, current_rows
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.ledger import write_decisions
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.shards import Shard
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.replaced_files import reread

log = logging.getLogger("parquetry")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The result of a rewrite."""

    run_id: str
    version_before: int
    version: int
    rows: tuple[DocumentRow, ...]
    """published rows of documents, entries and sessions; tombstones are marked `removed`"""

    @property
    def documents(self) -> list[DocumentRow]:
        """Published rows of documents."""
        return [row for row in self.rows if row.media_type not in KNOWLEDGE_TYPES]

    @property
    def entries(self) -> list[DocumentRow]:
        """Published rows of entries."""
        return [row for row in self.rows if row.media_type == ENTRY_TYPE]


def restore_version(lake: Lake, version: int, stamp: RunStamp, namespace: str | None = None) -> Rewrite:
    """Publish the documents, entries and sessions of an earlier version as a new version.

    Args:
        lake: the corpus.
        version: version number as listed by `history`.
        stamp: stamp of this run.
        namespace: restore only this part of the corpus.

    Raises:
        SettingsError: there is no such version.
        StorageError: texts of that version no longer exist, or the publish failed; nothing was published.
    """
    then = by_key(reread(lambda: _rows(lake.snapshot(version), namespace, "all")))

    def decide(snapshot: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        # A compaction may have given the version up meanwhile, and drops its texts next.
        lake.version_of(version)
        rows = restore(then, by_key(current), stamp)
        lost = _without_chunks(snapshot, rows)
        if lost:
            raise StorageError(
                f"version {version} cannot be restored: the chunks of {len(lost)} of its documents are not kept any "
                f"more ({', '.join(row.path for row in lost[:3])}{', ...' if len(lost) > 3 else ''})"
            )
        return rows

    return _rewrite(lake, "restore", decide, stamp, namespace, "all")


def restore_documents(lake: Lake, version: int, keys: Set[Key], stamp: RunStamp, namespace: str) -> Rewrite:
    """Publish documents that were removed as they were in an earlier version; those that are there stay as they are.

    Args:
        lake: the corpus.
        version: number of a version that has them.
        keys: the documents, all of one namespace.
        stamp: stamp of this run.
        namespace: the namespace.

    Raises:
        SettingsError: there is no such version any more.
        StorageError: their texts no longer exist, or the publish failed; nothing was published.
    """
    earlier = by_key(reread(lambda: _rows(lake.snapshot(version), namespace, "documents")))
    then = {key: row for key, row in earlier.items() if key in keys}

    def decide(snapshot: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        lake.version_of(version)
        there = by_key(current)
        rows = restore({key: row for key, row in then.items() if key not in there}, {}, stamp)
        if lost := _without_chunks(snapshot, rows):
            raise StorageError(
                f"{len(lost)} documents cannot be brought back, because their chunks are not kept any more: "
                f"{', '.join(row.path for row in lost[:3])}{', ...' if len(lost) > 3 else ''}"
            )
        return rows

    return _rewrite(lake, "restore", decide, stamp, namespace)


def remove_documents(
    lake: Lake,
    names: Sequence[str],
    stamp: RunStamp,
    namespace: str | None = None,
    before: Callable[[Sequence[DocumentRow]], None] = lambda _: None,
) -> Rewrite:
    """Publish a version without some documents.

    Args:
        lake: the corpus.
        names: ids, uris, paths, filenames, or globs over paths and filenames.
        stamp: stamp of this run.
        namespace: remove only documents of this part of the corpus.
        before: called with the chosen rows before anything is published, again if another run publishes meanwhile.

    Raises:
        SettingsError: a name matches no document; nothing was removed.
        StorageError: the publish failed; nothing was published.
    """

    def decide(_: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        meant = {name: named(current, name) for name in names}
        for name, those in meant.items():
            if not those:
                raise SettingsError(f"no document {name!r} in this corpus; `parquetry documents` lists them")
        chosen = by_key(row for those in meant.values() for row in those).values()
        before(tuple(chosen))
        return [removed_row(row, stamp, "remove/asked-for: taken out by `parquetry remove`") for row in chosen]

    return _rewrite(lake, "remove", decide, stamp, namespace)


def remove_namespace(lake: Lake, namespace: str, stamp: RunStamp) -> Rewrite:
    """Publish a version without a namespace: its documents, entries, and the records of sessions read.

    Args:
        lake: the corpus.
        namespace: the namespace to empty.
        stamp: stamp of this run.

    Raises:
        StorageError: the publish failed; nothing was published.
    """

    def decide(_: Snapshot, current: Sequence[DocumentRow]) -> list[DocumentRow]:
        return [removed_row(row, stamp, "remove/namespace: its namespace was deleted") for row in current]

    return _rewrite(lake, "remove", decide, stamp, namespace, "all")


def _rewrite(
    lake: Lake,
    kind: str,
    decide: Callable[[Snapshot, Sequence[DocumentRow]], list[DocumentRow]],
    stamp: RunStamp,
    namespace: str | None,
    what: Content = "documents",
) -> Rewrite:
    started = perf_counter()

    def publish(_: PublishConflict | None) -> Rewrite:
        snapshot = lake.snapshot()
        current = _rows(snapshot, namespace, what)
        rows = decide(snapshot, current)
        live = {(row.namespace, row.document_id) for row in current}
        decisions = _on_record(kind, [row for row in rows if row.media_type == ENTRY_TYPE], live, stamp)
        version = _publish(lake, snapshot, rows, decisions, stamp)
        return Rewrite(stamp.run_id, snapshot.version, version, tuple(rows))

    done = publish_with_retry(publish, "nothing was changed, try again")
    seconds = perf_counter() - started
    record_publish(lake, run_row(kind, done.version_before, done.version, done.rows, stamp, seconds))
    return done


def record_publish(lake: Lake, row: Mapping[str, object]) -> None:
    """Record a publish that needs no source; a failure to do so does not undo what is published, and is logged."""
    try:
        lake.record(row, [])
    except StorageError as error:
        log.warning("%s", error)


def _publish(
    lake: Lake, snapshot: Snapshot, rows: Sequence[DocumentRow], decisions: Sequence[Decision], stamp: RunStamp
) -> int:
    if not decisions:
        return lake.publish(snapshot, rows, stamp.run_id)

    def before(sequences: Mapping[str, int]) -> list[Shard]:
        name = f"{stamp.run_id}-{time.time_ns():x}.parquet"
        return [write_decisions(lake.layout, name, decisions, sequences, snapshot.version)]

    return lake.publish(snapshot, rows, stamp.run_id, before)


def _on_record(kind: str, rows: Sequence[DocumentRow], live: Set[Key], stamp: RunStamp) -> list[Decision]:
    """Return, for each namespace, the decision that records the entries a rewrite restored and removed."""
    made = []
    for namespace in sorted({row.namespace for row in rows}):
        mine = [row for row in rows if row.namespace == namespace]
        adds = tuple(r.document_id for r in mine if not r.removed and (namespace, r.document_id) not in live)
        retires = tuple(row.document_id for row in mine if row.removed)
        if adds or retires:
            made.append(rewritten(namespace, adds, retires, kind, stamp))
    return made


def run_row(
    kind: str, version_before: int, version: int, rows: Sequence[DocumentRow], stamp: RunStamp, seconds: float
) -> dict[str, object]:
    """Return the row in `runs` of a publish that needs no source."""
    removed = sum(row.removed for row in rows)
    return {
        "run_id": stamp.run_id,
        "kind": kind,
        "status": "completed",
        "started_at": stamp.at,
        "seconds": seconds,
        "namespaces": sorted({row.namespace for row in rows}),
        "version_before": version_before,
        "version_after": version,
        "changed": len(rows) - removed,
        "removed": removed,
    }


def _rows(snapshot: Snapshot, namespace: str | None, what: Content) -> list[DocumentRow]:
    return current_rows(snapshot, None if namespace is None else (namespace,), what)


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
