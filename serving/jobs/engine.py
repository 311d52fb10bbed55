"""Engine and observer of runs that a service carries out: they can be stopped, and their progress is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from parquetry.flows.pipelines.observer import Observer
from parquetry.storage.analysis.course import Stage
from parquetry.tasks.engine.base import BatchHandler, Cancelled, DirectEngine, Report, Result, RunLike, Work

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

KEEP_SECONDS = 0.5
"""seconds between two records of a run's progress"""


class StoppableEngine(DirectEngine):
    """Engine of one run, which another thread can stop: before its publish, or between two documents."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._run: RunLike | None = None
        self.is_done = threading.Event()
        """set at the end of the run"""
        self.on_step: Callable[[str], None] = lambda _: None
        """called with the name of each step that begins"""

    def stop(self) -> None:
        """Stop the run; a publish that has begun is finished."""
        self._stopped.set()
        run = self._run
        if run is not None:
            run.cancelled.set()

    def check(self) -> None:
        """Raise Cancelled if the run is to stop."""
        if self._stopped.is_set():
            raise Cancelled("the run was stopped; nothing was published")

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        self.check()
        self.on_step(name)
        return super().step(name, function)

    def batches(self, batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Iterator[Report]:
        self._run = handler.run
        if self._stopped.is_set():
            handler.run.cancelled.set()
        yield from super().batches(batches, handler)


class Progress(Observer):
    """Pass the counts of a run on, at most every half second, and everything to a second observer.

    Args:
        keep: receives the counts.
        other: receives what this observer receives.
    """

    def __init__(self, keep: Callable[[Mapping[str, Any]], None], other: Observer) -> None:
        self._keep = keep
        self._other = other
        self._lock = threading.Lock()
        self._counts: dict[str, Any] = {"stage": "scanning"}
        self._kept = 0.0

    def step(self, name: str) -> None:
        """Note the step that begins."""
        if name in get_args(Stage):
            self._put({"stage": name})
        elif name == "publish":
            with self._lock:
                self._counts["stage"] = "publishing"
                self._counts.pop("slow", None)
                self._kept = 0.0
            self._pass_on()

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        total = plan.to_do
        self._put({"stage": "documents", "documents": total, "read": 0})
        self._other.planned(plan, batches)

    def documents_read(self, reading: ReadingProgress) -> None:
        self._other.documents_read(reading)

    def document_read(self) -> None:
        with self._lock:
            self._counts["read"] = self._counts.get("read", 0) + 1
            self._counts.pop("slow", None)
        self._pass_on()
        self._other.document_read()

    def document_slow(self, slow: SlowDocument) -> None:
        with self._lock:
            self._counts["slow"] = {"path": slow.path, "seconds": round(slow.seconds, 1)}
        self._pass_on()
        self._other.document_slow(slow)

    def batch_done(self, report: BatchReport) -> None:
        with self._lock:
            counts, work = self._counts, report.work
            counts["failed"] = counts.get("failed", 0) + sum(row.status != "indexed" for row in report.rows)
            counts["chunks"] = counts.get("chunks", 0) + work.chunks_written
            counts["tokens"] = counts.get("tokens", 0) + work.tokens
            known = None not in (work.cost_usd, counts.get("cost_usd", 0.0))
            counts["cost_usd"] = counts.get("cost_usd", 0.0) + work.cost_usd if known else None
        self._pass_on()
        self._other.batch_done(report)

    def published(self, report: RunReport) -> None:
        self._put({"stage": "published", "version": report.version})
        self._other.published(report)

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:
        self._put({"stage": "sessions", "sessions": len(plan.sessions), "read": 0})
        self._other.sessions_planned(plan, batches)

    def sessions_asked(self, asking: Asking) -> None:
        self._other.sessions_asked(asking)

    def sessions_learned(self, report: SessionBatchReport) -> None:
        with self._lock:
            self._counts["read"] = self._counts.get("read", 0) + len(report.learned)
        self._pass_on()
        self._other.sessions_learned(report)

    def sessions_published(self, report: SessionsReport) -> None:
        self._put({"stage": "published", "version": report.version})
        self._other.sessions_published(report)

    def __enter__(self) -> Progress:
        self._other.__enter__()
        return self

    def __exit__(self, *left: object) -> None:
        self._other.__exit__(*left)

    def _put(self, counts: Mapping[str, Any]) -> None:
        with self._lock:
            self._counts = dict(counts)
            self._kept = 0.0
        self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if time.monotonic() - self._kept < KEEP_SECONDS:
                return
            self._kept = time.monotonic()
            counts = dict(self._counts)
        self._keep(counts)
