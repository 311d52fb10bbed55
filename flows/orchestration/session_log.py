"""Progress of a run over sessions in the flow run's log."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import get_run_logger

from parquetry.flows.pipelines.sessions import SessionsObserver
from parquetry.sessions.report import SessionsReport
from parquetry.tasks.sessions.asking import Asking
from parquetry.tasks.sessions.batch import SessionBatch, SessionBatchReport
from parquetry.tasks.sessions.plan import SessionPlan

_MOST_FAILURES = 20
"""maximum number of sessions named in the log; the corpus's table `failures` has the rest"""


class SessionsLog:
    """Observer that logs progress to the flow run's log and forwards it to another observer.

    Args:
        watcher: observer to forward to; None for none.
    """

    def __init__(self, watcher: SessionsObserver | None) -> None:
        self._log = get_run_logger()
        self._watcher = watcher
        self._total = 0
        self._done = 0

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:
        self._total = len(plan.sessions)
        counts = ", ".join(f"{count} {name}" for name, count in plan.counts.items() if count)
        self._log.info("%s, in %d batches", counts or "no sessions", len(batches))
        if self._watcher:
            self._watcher.sessions_planned(plan, batches)

    def sessions_asked(self, asking: Asking) -> None:
        if self._watcher:
            self._watcher.sessions_asked(asking)

    def sessions_learned(self, report: SessionBatchReport) -> None:
        self._done += len(report.learned)
        self._log.info(
            "%d of %d sessions; batch %d: %d statements, %d refused, %d sessions failed",
            self._done,
            self._total,
            report.batch,
            sum(len(each.drafts) for each in report.learned),
            sum(len(each.refusals) for each in report.learned),
            sum(each.failed is not None for each in report.learned),
        )
        if self._watcher:
            self._watcher.sessions_learned(report)

    def sessions_published(self, report: SessionsReport) -> None:
        counts = ", ".join(f"{count} {name}" for name, count in report.entries.items() if count)
        news = "published version" if report.version != report.version_before else "nothing to publish, still version"
        self._log.info("%s %d: %s", news, report.version, counts or "no entries")
        for outage in report.outages:
            self._log.error("failed: %s", outage)
        if report.index_error is not None:
            self._log.error("the search index is not written: %s", report.index_error)
        for failure in report.failures[:_MOST_FAILURES]:
            self._log.warning("failed %s: %s/%s: %s", failure.uri, failure.stage, failure.reason, failure.detail)
        if len(report.failures) > _MOST_FAILURES:
            self._log.warning("and %d more failed", len(report.failures) - _MOST_FAILURES)
        if self._watcher:
            self._watcher.sessions_published(report)
