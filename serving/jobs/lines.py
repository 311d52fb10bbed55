"""Lines on the terminal about jobs and refreshes in progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.observer import Observer
from parquetry.plural import counted
from parquetry.serving.cli.progress import LINE_SECONDS, Lines, ProgressBar
from parquetry.serving.jobs.keeping_fresh import ProgressLine
from parquetry.telemetry.json_logs import is_json, say

if TYPE_CHECKING:
    from parquetry.planning.batches import Batch
    from parquetry.sessions.report import SessionsReport
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.reading_progress import SlowDocument
    from parquetry.tasks.sessions.asking import Asking
    from parquetry.tasks.sessions.batch import SessionBatch
    from parquetry.tasks.sessions.plan import SessionPlan


def tell_line(line: ProgressLine) -> None:
    """Print a line, with the time."""
    at = "" if line.is_detail or is_json() else f"{datetime.now().astimezone():%H:%M:%S} "
    say(f"{at}{line.text}", is_problem=line.is_problem)


def shown() -> Observer:
    """Return an observer that shows a run: a bar on a terminal, elsewhere lines."""
    if is_json():
        # The runs themselves write lines to such a log.
        return Observer()
    return ProgressBar() if sys.stderr.isatty() else RunLines()


class RunLines(Observer):
    """Progress of a run as lines: its size, and how far it is from time to time.

    Args:
        seconds: interval of the lines.
    """

    def __init__(self, seconds: float = LINE_SECONDS) -> None:
        self._seconds = seconds
        self._slow = Lines(seconds)
        self._lock = threading.Lock()
        self._total = self._read = 0
        self._told = time.monotonic()

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:  # noqa: ARG002 - the base's
        self._total = plan.to_do
        if self._total:
            tell_line(ProgressLine(f"{counted(self._total, 'document')} to index"))

    def document_read(self) -> None:
        with self._lock:
            self._read += 1
            if time.monotonic() - self._told < self._seconds:
                return
            self._told = time.monotonic()
            read = self._read
        tell_line(ProgressLine(f"{read} of {counted(self._total, 'document')} read"))

    def document_slow(self, slow: SlowDocument) -> None:
        self._slow.document_slow(slow)

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:  # noqa: ARG002
        if plan.sessions:
            tell_line(ProgressLine(f"{counted(len(plan.sessions), 'session')} to learn from"))

    def sessions_asked(self, asking: Asking) -> None:
        self._slow.sessions_asked(asking)

    def sessions_published(self, report: SessionsReport) -> None:
        self._slow.sessions_published(report)

    def __exit__(self, *left: object) -> None:
        self._slow.__exit__(*left)
