"""Observer that forwards everything to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.observer import Observer

if TYPE_CHECKING:
    from parquetry.planning.batches import Batch
    from parquetry.planning.report import RunReport
    from parquetry.sessions.report import SessionsReport
    from parquetry.tasks.documents.batch_report import BatchReport
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.reading_progress import ReadingProgress, SlowDocument
    from parquetry.tasks.sessions.asking import Asking
    from parquetry.tasks.sessions.batch import SessionBatch, SessionBatchReport
    from parquetry.tasks.sessions.plan import SessionPlan


class Forwarding(Observer):
    """Observer that forwards everything; subclasses add to what they override.

    Args:
        watcher: observer to forward to.
    """

    def __init__(self, watcher: Observer) -> None:
        self._watcher = watcher

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        self._watcher.planned(plan, batches)

    def documents_read(self, reading: ReadingProgress) -> None:
        self._watcher.documents_read(reading)

    def document_read(self) -> None:
        self._watcher.document_read()

    def document_slow(self, slow: SlowDocument) -> None:
        self._watcher.document_slow(slow)

    def batch_done(self, report: BatchReport) -> None:
        self._watcher.batch_done(report)

    def published(self, report: RunReport) -> None:
        self._watcher.published(report)

    def migration_planned(self, documents: int) -> None:
        self._watcher.migration_planned(documents)

    def migration_built(self, documents: int) -> None:
        self._watcher.migration_built(documents)

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:
        self._watcher.sessions_planned(plan, batches)

    def sessions_asked(self, asking: Asking) -> None:
        self._watcher.sessions_asked(asking)

    def sessions_learned(self, report: SessionBatchReport) -> None:
        self._watcher.sessions_learned(report)

    def sessions_published(self, report: SessionsReport) -> None:
        self._watcher.sessions_published(report)
