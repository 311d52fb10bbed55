"""Progress of a run, for people: a bar on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knowledge.batches import Batch
    from knowledge.report import RunReport
    from knowledge.sessions.report import SessionsReport
    from tasks.batch import BatchReport
    from tasks.plan import RefreshPlan
    from tasks.session_batch import SessionBatch, SessionBatchReport
    from tasks.session_plan import SessionPlan


class Silent:
    """Tells nobody."""

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None: ...

    def batch_done(self, report: BatchReport) -> None: ...

    def published(self, report: RunReport) -> None: ...

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None: ...

    def sessions_learned(self, report: SessionBatchReport) -> None: ...

    def sessions_published(self, report: SessionsReport) -> None: ...

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...


class Bar(Silent):
    """A progress bar on stderr that counts documents."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("Scanning", total=None)

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:  # noqa: ARG002 - the Protocol's
        total = sum(len(batch.changes) for batch in batches)
        self._progress.update(self._task, description="Documents", total=total)

    def batch_done(self, report: BatchReport) -> None:
        self._progress.advance(self._task, sum(not row.removed for row in report.rows))

    def published(self, report: RunReport) -> None:  # noqa: ARG002 - the Protocol's
        self._progress.update(self._task, description="Published")

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:  # noqa: ARG002
        self._progress.update(self._task, description="Sessions", total=len(plan.sessions))

    def sessions_learned(self, report: SessionBatchReport) -> None:
        self._progress.advance(self._task, len(report.learned))

    def sessions_published(self, report: SessionsReport) -> None:  # noqa: ARG002
        self._progress.update(self._task, description="Published")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def progress(*, silent: bool) -> Silent:
    """A bar if a person is watching, else nothing."""
    return Bar() if sys.stderr.isatty() and not silent else Silent()
