"""Publish a run: register its shards, commit its rows, retry when another run was first."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from parquetry.errors import PublishConflict
from parquetry.model import DocumentRow
from parquetry.planning.rebase import by_key, rebase
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.shards import Shard
from parquetry.storage.replaced_files import reread
from parquetry.tasks.documents.run import DocumentRun

log = logging.getLogger("parquetry")


def publish(
    run: DocumentRun, known: Sequence[DocumentRow], rows: Collection[DocumentRow], shards: Sequence[Shard]
) -> tuple[int, Collection[DocumentRow]]:
    """Make the results of a run visible, all in one commit.

    Args:
        run: the run in progress.
        known: the rows that the published ones replace, as of the plan; may include more.
        rows: rows to publish.
        shards: shards with the rows' texts and chunks.

    Returns:
        The new version of `documents`, and the rows that were published.

    Raises:
        PublishConflict: other runs kept publishing first; nothing of this run is visible.
        StorageError: nothing of this run is visible.
    """
    run.check_cancelled()
    run.lake.register(shards, run.stamp.run_id)

    def attempt(conflict: PublishConflict | None) -> tuple[int, Collection[DocumentRow]]:
        base, wanted = run.base, rows
        if conflict is not None:
            log.info("%s; planning again what it changed", conflict)
            base, now = reread(lambda: _now(run, rows))
            wanted = rebase(rows, by_key(known), by_key(now))
        return run.lake.publish(base, wanted, run.stamp.run_id), wanted

    return publish_with_retry(attempt, "nothing of this run was published, its vectors are kept: run it again")


def _now(run: DocumentRun, rows: Collection[DocumentRow]) -> tuple[Snapshot, list[DocumentRow]]:
    """Return the newest version, and its rows of the documents of a run."""
    base = run.lake.snapshot()
    return base, CurrentRows(base, {row.namespace for row in rows}).named(row.document_id for row in rows)
