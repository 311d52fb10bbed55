"""A run that builds the candidates of a migration: what its batches share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from parquetry.planning.migration import Migration
from parquetry.storage.files.layout import Table
from parquetry.storage.lake.candidates import MigrationCandidates
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.migrations import register_candidates, registered_candidates
from parquetry.storage.lake.shards import Shard
from parquetry.tasks.documents.run import DocumentRun


@dataclass(kw_only=True)
class MigrationRun(DocumentRun):
    """A run that builds candidates in progress; its settings are those after the migration."""

    migration: Migration
    _held: dict[Table, set[int]] = field(default_factory=dict)
    """table -> candidates that it holds"""
    _registered: int = 0
    """number of shards of texts that were registered"""
    _registering: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, candidates: MigrationCandidates) -> None:
        """Take over what was built before."""
        self._held = {"texts": candidates.held("texts"), "chunks": candidates.held("chunks")}
        self._registered = registered_candidates(self.lake.layout, self.migration)

    def follow(self, newest: Snapshot) -> None:
        """Read stored texts and chunks of a newer version from now on; no batch may be in work."""
        with self._lock:
            if self._stored is not None:
                self._stored.close()
            self.base, self._stored = newest, None
            self._vectors.clear()

    def missing_in(self, table: Table, revisions: Iterable[int]) -> set[int]:
        """Return those of some candidates that a table does not hold yet."""
        with self._registering:
            return set(revisions) - self._held.get(table, set())

    def register(self, texts: Shard | None, chunks: Shard, notes: Shard | None, revisions: Iterable[int]) -> None:
        """Register the candidates of a batch; a retry of the batch writes what is not registered.

        Args:
            texts: their texts; None if all of them are registered.
            chunks: their chunks.
            notes: notes on them, if there are any.
            revisions: their revisions.

        Raises:
            RefusedError: another process builds the migration at the same time.
            StorageError: writing failed.
        """
        with self._registering:
            if texts is not None:
                register_candidates(self.lake, self.migration, texts, self.stamp.run_id, self._registered)
                self._registered += 1
                self._held.setdefault("texts", set()).update(revisions)
            self.lake.register([each for each in (chunks, notes) if each is not None], self.stamp.run_id)
            self._held.setdefault("chunks", set()).update(revisions)
