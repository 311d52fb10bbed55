"""Progress of a run as lines of a log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.forwarding import Forwarding
from parquetry.flows.pipelines.observer import Observer
from parquetry.model import Failure
from parquetry.planning.batches import Batch
from parquetry.planning.report import PublishOutcome, RunReport
from parquetry.planning.tally import tally_of
from parquetry.sessions.report import SessionsReport
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.plan import RefreshPlan
from parquetry.tasks.documents.reading_progress import SlowDocument

if TYPE_CHECKING:
    from parquetry.tasks.sessions.batch import SessionBatch, SessionBatchReport
    from parquetry.tasks.sessions.plan import SessionPlan

_MOST_FAILURES = 20
"""maximum number of failures in the log; the table artifact and the table `failures` have more"""


class LoggedRun(Forwarding):
    """Observer that logs progress and forwards it to another observer.

    Args:
        watcher: observer to forward to.
        log: receives the lines.
    """

    def __init__(self, watcher: Observer, log: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        super().__init__(watcher)
        self._log = log
        self._total = 0
        self._done = 0

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        self._total = sum(len(batch.changes) for batch in batches)
        for source in plan.sources:
            line = ("%s: %d documents, %d to do", source.source, source.listed, tally_of(source.changes).to_do)
            self._log.info(*line, extra={"source": source.source})
        if self._total:
            self._log.info(
                "%d documents in %d batches, likely %d chunks", self._total, len(batches), plan.estimate.likely.chunks
            )
        super().planned(plan, batches)

    def document_slow(self, slow: SlowDocument) -> None:
        self._log.info("%s", slow)
        super().document_slow(slow)

    def batch_done(self, report: BatchReport) -> None:
        rows = [row for row in report.rows if not row.removed]
        self._done += len(rows)
        self._log.info(
            "%d of %d documents; batch %d: %d chunks, %d embedded, %d documents failed, %d skipped",
            self._done,
            self._total,
            report.batch,
            report.work.chunks_written,
            report.work.chunks_embedded,
            sum(row.status == "failed" for row in rows),
            sum(row.status == "skipped" for row in rows),
        )
        super().batch_done(report)

    def published(self, report: RunReport) -> None:
        self._log_version(report, report.documents.as_dict(), "no documents")
        self._log_failures([failure for failure in report.failures if failure.status == "failed"])
        for kept in report.kept[:_MOST_FAILURES]:
            self._log.warning("%s", kept)
        for line in report.left_out:
            self._log.info("%s", line)
        for line in report.empty:
            self._log.warning("%s", line)
        for refusal in report.refused:
            self._log.warning("refused: %s", refusal)
        self._log_batches(report)
        self._log_problems(report.outages, report.index_error)
        super().published(report)

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:
        self._total = len(plan.sessions)
        self._log.info("%s, in %d batches", _counted(plan.counts) or "no sessions", len(batches))
        super().sessions_planned(plan, batches)

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
        super().sessions_learned(report)

    def sessions_published(self, report: SessionsReport) -> None:
        self._log_version(report, report.entries, "no entries")
        self._log_failures(report.failures)
        self._log_batches(report)
        self._log_problems(report.outages, report.index_error)
        super().sessions_published(report)

    def _log_version(self, report: PublishOutcome, counts: Mapping[str, int], none: str) -> None:
        news = "published version" if report.version != report.version_before else "nothing to publish, still version"
        self._log.info("%s %d: %s", news, report.version, _counted(counts) or none)

    def _log_failures(self, failures: Sequence[Failure]) -> None:
        for failure in failures[:_MOST_FAILURES]:
            self._log.warning("failed %s: %s/%s: %s", failure.uri, failure.stage, failure.reason, failure.detail)
        if len(failures) > _MOST_FAILURES:
            self._log.warning("and %d more failed", len(failures) - _MOST_FAILURES)

    def _log_batches(self, report: RunReport | SessionsReport) -> None:
        for line in (*report.batches, *report.suspended):
            self._log.info("%s", line)
        for problem in report.batch_problems:
            self._log.error("failed: %s", problem)

    def _log_problems(self, outages: Iterable[str], index_error: str | None) -> None:
        for outage in outages:
            self._log.error("failed: %s", outage)
        if index_error is not None:
            self._log.error("the search index is not written: %s", index_error)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
