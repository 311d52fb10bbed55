"""Progress of a run as artifacts that move while it goes on: a bar, and a table with one row a source."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from httpx import HTTPError
from prefect import get_run_logger, runtime
from prefect.artifacts import create_progress_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.exceptions import ObjectNotFound

from parquetry.flows.orchestration.report import artifact_key, visible_rows
from parquetry.flows.pipelines.forwarding import Forwarding
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.batches import Batch
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.plan import RefreshPlan
from parquetry.tasks.sessions.batch import SessionBatch, SessionBatchReport
from parquetry.tasks.sessions.plan import SessionPlan

EVERY_SECONDS = 5.0
"""seconds between two updates; each is a request, and an event on the server"""
MOST_SOURCES = 500
"""maximum number of rows of the table"""
_JOIN_SECONDS = 10


@dataclass(slots=True)
class SourceProgress:
    """Row of one source."""

    namespace: str
    source: str
    to_do: int = 0
    """number of documents or sessions that need work"""
    done: int = 0
    """number of those with a result, good or bad"""
    failed: int = 0
    """number of those that failed"""

    def row(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "source": self.source,
            "to do": self.to_do,
            "done": self.done,
            "failed": self.failed,
        }


class RunProgress(Forwarding):
    """Observer that keeps two artifacts of the flow run up to date, and forwards to another observer.

    A context manager: the artifacts move in a thread of their own while the block runs, and show its end after it.
    A server that does not take them costs the run nothing but a line in its log.

    Args:
        watcher: observer to forward to.
        namespaces: namespaces of the run.
    """

    def __init__(self, watcher: Observer, namespaces: Collection[str]) -> None:
        super().__init__(watcher)
        self._kind = str(runtime.flow_run.flow_name)
        self._names = sorted(namespaces)
        self._log = get_run_logger()
        self._sources: dict[tuple[str, str], SourceProgress] = {}
        self._read = 0
        """number of documents read, whether their batch is done or not"""
        self._lock = threading.Lock()
        self._shown: tuple[float, str] | None = None
        self._bar: UUID | None = None
        self._table: UUID | None = None
        self._end = threading.Event()
        context = contextvars.copy_context()
        # The context has the flow run, and the server that a program started for it.
        self._thread = threading.Thread(target=context.run, args=(self._go_on,), name="progress", daemon=True)

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:
        super().planned(plan, batches)
        for source in plan.sources:
            self._source(source.namespace, source.source)
        for batch in batches:
            for change in batch.changes:
                self._source(change.namespace, change.source).to_do += 1
        self._begin()

    def document_read(self) -> None:
        super().document_read()
        with self._lock:
            self._read += 1

    def batch_done(self, report: BatchReport) -> None:
        super().batch_done(report)
        for row in report.rows:
            if row.removed:
                continue
            self._done(row.namespace, row.source, failed=row.status == "failed")

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:
        super().sessions_planned(plan, batches)
        for found in plan.sessions:
            self._source(found.file.namespace, found.file.source).to_do += 1
        self._begin()

    def sessions_learned(self, report: SessionBatchReport) -> None:
        super().sessions_learned(report)
        for each in report.learned:
            self._done(each.found.file.namespace, each.found.file.source, failed=each.failed is not None)

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)
            self._show()

    def _source(self, namespace: str, source: str) -> SourceProgress:
        return self._sources.setdefault((namespace, source), SourceProgress(namespace, source))

    def _done(self, namespace: str, source: str, *, failed: bool) -> None:
        with self._lock:
            row = self._source(namespace, source)
            row.done += 1
            row.failed += failed

    def _begin(self) -> None:
        """Create the artifacts, if there is anything to do."""
        if not any(source.to_do for source in self._sources.values()):
            return
        try:
            bar, table = self._state()
            key = artifact_key(f"{self._kind}-progress", self._names)
            told = "Share of the work that is done, in percent"
            self._bar = cast("UUID", create_progress_artifact(bar, key=key, description=told))
            key = artifact_key(f"{self._kind}-sources", self._names)
            told = "Work by source, while the run goes on"
            self._table = cast("UUID", create_table_artifact(json.loads(table), key=key, description=told))
        except HTTPError as error:
            self._log.warning("the run's progress is not shown: %s", error)
            return
        self._shown = bar, table
        self._thread.start()

    def _go_on(self) -> None:
        while not self._end.wait(EVERY_SECONDS) and self._show():
            pass

    def _show(self) -> bool:
        """Update the artifacts if anything changed; return False if the server does not take them."""
        state = bar, table = self._state()
        if state == self._shown or self._bar is None or self._table is None:
            return True
        try:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._bar, ArtifactUpdate(data=bar))
                client.update_artifact(self._table, ArtifactUpdate(data=table))
        except (HTTPError, ObjectNotFound) as error:
            self._log.warning("the run's progress is no longer shown: %s", error)
            self._bar = None
            return False
        self._shown = state
        return True

    def _state(self) -> tuple[float, str]:
        """Return the percentage and the rows as JSON."""
        with self._lock:
            sources = list(self._sources.values())
            to_do, done = sum(each.to_do for each in sources), sum(each.done for each in sources)
            rows = visible_rows(each.row() for each in sources[:MOST_SOURCES])
            read = max(self._read, done)
        # A document that is read has half of its way behind it.
        share = min(1.0, (min(read, to_do) + min(done, to_do)) / (2 * to_do)) if to_do else 0.0
        return round(100 * share, 1), json.dumps(rows)
