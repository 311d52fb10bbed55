"""Observers of runs: the base, which reports nothing. Imports nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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


class Observer:
    """Observer that reports nothing; subclasses report what they override."""

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None: ...

    def documents_read(self, reading: ReadingProgress) -> None: ...

    def document_read(self) -> None: ...

    def document_slow(self, slow: SlowDocument) -> None: ...

    def batch_done(self, report: BatchReport) -> None: ...

    def published(self, report: RunReport) -> None: ...

    def migration_planned(self, documents: int) -> None: ...

    def migration_built(self, documents: int) -> None: ...

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None: ...

    def sessions_asked(self, asking: Asking) -> None: ...

    def sessions_learned(self, report: SessionBatchReport) -> None: ...

    def sessions_published(self, report: SessionsReport) -> None: ...

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None: ...
