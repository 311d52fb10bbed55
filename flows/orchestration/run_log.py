"""Progress of a refresh in the flow run's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.exceptions import MissingContextError

from parquetry.flows.pipelines.documents import Observer
from parquetry.planning.batches import Batch
from parquetry.planning.report import RunReport
from parquetry.tasks.documents.batch import BatchReport
from parquetry.tasks.documents.plan import RefreshPlan
from parquetry.tasks.documents.reading_progress import ReadingProgress, SlowDocument

_MOST_FAILURES = 20
"""maximum number of documents named in the log; the table artifact and the table `failures` have more"""


class RunLog:
    """Observer that logs progress to the flow run's log and forwards it to another observer.

    Args:
        watcher: observer to forward to; None for none.
    """

    def __init__(self, watcher: Observer | None) -> None:
        self._log = get_run_logger()
        self._watcher = watcher
        self._total = 0
        self._done = 0

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        self._total = sum(len(batch.changes) for batch in batches)
        for source in plan.sources:
            to_do = sum(change.effort != "nothing" for change in source.changes)
            self._log.info("%s: %d documents, %d to do", source.source, source.listed, to_do)
        if self._total:
            self._log.info(
                "%d documents in %d batches, likely %d chunks", self._total, len(batches), plan.estimate.likely.chunks
            )
        if self._watcher:
            self._watcher.planned(plan, batches)

    def documents_read(self, reading: ReadingProgress) -> None:
        if self._watcher:
            self._watcher.documents_read(reading)

    def document_read(self) -> None:
        if self._watcher:
            self._watcher.document_read()

    def document_slow(self, slow: SlowDocument) -> None:
        self._log.info("%s", slow)
        if self._watcher:
            self._watcher.document_slow(slow)

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
        if self._watcher:
            self._watcher.batch_done(report)

    def published(self, report: RunReport) -> None:
        counts = ", ".join(f"{count} {name}" for name, count in report.documents.as_dict().items() if count)
        news = "published version" if report.version != report.version_before else "nothing to publish, still version"
        self._log.info("%s %d: %s", news, report.version, counts or "no documents")
        failed = [failure for failure in report.failures if failure.status == "failed"]
        for failure in failed[:_MOST_FAILURES]:
            self._log.warning("failed %s: %s/%s: %s", failure.uri, failure.stage, failure.reason, failure.detail)
        if len(failed) > _MOST_FAILURES:
            self._log.warning("and %d more failed", len(failed) - _MOST_FAILURES)
        for kept in report.kept[:_MOST_FAILURES]:
            self._log.warning("%s", kept)
        for line in report.left_out:
            self._log.info("%s", line)
        for line in report.empty:
            self._log.warning("%s", line)
        for outage in report.outages:
            self._log.error("failed: %s", outage)
        for refusal in report.refused:
            self._log.warning("refused: %s", refusal)
        if report.index_error is not None:
            self._log.error("the search index is not written: %s", report.index_error)
        if self._watcher:
            self._watcher.published(report)


class _ToRunLog(logging.Handler):
    """Handler that forwards records to the log of the current flow or task run."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log = get_run_logger()
        except MissingContextError:
            return
        log.log(record.levelno, record.msg, *(record.args or ()))


@contextmanager
def tasks_log_to_run() -> Iterator[None]:
    """Forward the steps' own log records, which do not depend on Prefect, to the flow run's log."""
    log, handler = logging.getLogger("parquetry"), _ToRunLog()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
