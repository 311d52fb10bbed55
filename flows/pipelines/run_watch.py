"""Tell the outcome of a run, successful or not: metrics, traces, lines of a log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from parquetry.errors import (
    IndexNotWritten,
    ParquetryError,
    RefusedError,
    RunSuspended,
    SettingsError,
)
from parquetry.flows.pipelines.observer import Observer
from parquetry.masking import masked
from parquetry.planning.costs import Cost
from parquetry.planning.report import RunReport
from parquetry.settings.sections import Settings
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.tasks.engine.base import Cancelled
from parquetry.telemetry import tracing
from parquetry.telemetry.json_logs import RUNS, log_run, run_in_progress
from parquetry.telemetry.outcome import RunOutcome, SourceKey

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from parquetry.sessions.report import SessionsReport

Report = TypeVar("Report", RunReport, "SessionsReport")
log = logging.getLogger("parquetry")
_STATUS: tuple[tuple[type[ParquetryError], str], ...] = (
    (RefusedError, "refused"),
    (RunSuspended, "suspended"),
    (IndexNotWritten, "unindexed"),
    (Cancelled, "cancelled"),
)


@dataclass
class RunWatch:
    """Times and outcome of a run in progress."""

    settings: Settings
    kind: str
    started: float = field(default_factory=perf_counter)
    """time at which the run began, on `perf_counter`"""
    run_id: str | None = None
    scopes: Sequence[Scope] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    """seconds by the clock of each step so far"""
    costs: Sequence[Cost] = ()
    """costs of a run that failed"""
    version: int | None = None
    """version that the run began with"""
    open: ExitStack = field(default_factory=ExitStack)
    """contexts that end with the watch"""
    spans: ExitStack = field(default_factory=ExitStack)
    """the span of the run"""
    root: Span | None = None
    """span of the run, if there is one"""
    is_published: bool = False
    """True once something of the run is visible"""
    is_told: bool = False
    """True once the outcome is told"""

    def observed(self, observer: Observer) -> Observer:
        """Return an observer that also writes the lines of a JSON log, if there is one."""
        if not log_run(self.settings.observability):
            return observer
        from parquetry.flows.pipelines.run_lines import LoggedRun

        return LoggedRun(observer, logging.getLogger(RUNS))

    def begin(self, run_id: str, version: int) -> None:
        """Name the run to the log, until it is watched no more."""
        self.run_id, self.version = run_id, version
        if self.root is not None:
            self.root.set_attribute("parquetry.run.id", run_id)
            self.root.set_attribute("parquetry.sources", sorted(source for _, source in self._keys()))
        self.open.enter_context(run_in_progress(run_id, (masked(scope.name) for scope in self.scopes)))

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return perf_counter() - self.started

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        started = perf_counter()
        try:
            with tracing.span(f"parquetry.{name}"):
                yield
        finally:
            self.seconds[name] = perf_counter() - started

    def published(self, report: Report) -> Report:
        """Tell the outcome of a run that published; return its report, with a warning if that was not possible."""
        held = {*report.failed_sources, *report.held_sources}
        broken = {(each.namespace, each.source) for each in report.failures if each.stage == "scan"}
        whole = self._keys(whole=True)
        found: Counter[tuple[str, str, str]] = Counter()
        found.update((each.namespace, masked(each.source), each.status) for each in report.failures)
        outcome = replace(
            self._outcome(_status(report.error), report.seconds),
            fresh=frozenset(key for key in whole - broken if key[1] not in held),
            seconds_by_stage=report.seconds_by_stage,
            counts=report.documents.as_dict() if isinstance(report, RunReport) else report.sessions,
            not_indexed=found if whole == self._keys() else None,
            costs=report.costs,
            version=report.version,
        )
        lines: list[str | None] = [self._tell(outcome), self._end_trace(outcome, report.error)]
        return replace(report, warnings=(*report.warnings, *filter(None, lines)))

    def failed(self, error: BaseException) -> None:
        """Tell the outcome of a run that ended early."""
        if log_run(self.settings.observability):
            when = "after its publish" if self.is_published else "nothing was published"
            line = ("%s failed, %s: %s: %s", self.kind, when, type(error).__name__, error)
            logging.getLogger(RUNS).error(*line, extra={"run_id": self.run_id})
        if self.scopes or not isinstance(error, SettingsError):
            outcome = self._outcome(_status(error), self.elapsed)
            self._tell(outcome)
            self._end_trace(outcome, error)

    def begin_trace(self) -> None:
        """Begin the span of the run, if the settings ask for one."""
        if tracing.start_tracing(self.settings.observability):
            self.root = self.spans.enter_context(tracing.span(f"parquetry.{self.kind}"))

    def _end_trace(self, outcome: RunOutcome, error: BaseException | None) -> str | None:
        """End the span of the run, count it, and send both; return a warning if they did not arrive."""
        if self.root is None:
            return None
        self.root.set_attributes({"parquetry.run.status": outcome.status, "parquetry.version": outcome.version or 0})
        self.root.set_attributes({f"parquetry.documents.{name}": count for name, count in outcome.counts.items()})
        if not outcome.is_success:
            tracing.set_error(self.root, type(error).__name__ if error else outcome.status)
        self.spans.close()
        labels: dict[str, tracing.Value] = {"parquetry.run.kind": self.kind, "parquetry.run.status": outcome.status}
        tracing.duration("parquetry.run.duration", outcome.seconds, labels)
        for name, count in outcome.counts.items():
            tracing.count("parquetry.run.documents", count, {"parquetry.outcome": name})
        for cost in outcome.costs:
            tracing.count("parquetry.tokens", cost.tokens, {"parquetry.purpose": cost.purpose})
            tracing.count("parquetry.cost.usd", cost.cost_usd or 0.0, {"parquetry.purpose": cost.purpose})
        if not (lost := tracing.flush()):
            return None
        line = f"traces and metrics of this run did not arrive at the OpenTelemetry collector ({lost} exports failed)"
        log.warning("%s", line)
        return line

    def _tell(self, outcome: RunOutcome) -> str | None:
        self.is_told = True
        if self.settings.observability.textfile is None:
            return None
        # Its parser takes a tenth of the time of a run without changes.
        from parquetry.telemetry.textfile import write_textfile

        default = self.settings.corpus.namespace
        configured = {(each.namespace or default, masked(each.name)) for each in self.settings.source}
        uploads = {(namespace, UPLOADS) for namespace, _ in configured | {(default, "")}}
        wrong = write_textfile(Path(self.settings.observability.textfile), outcome, configured | uploads)
        if wrong is None:
            return None
        line = f"metrics of this run: {wrong} (observability.textfile)"
        log.warning("%s", line)
        return line

    def _outcome(self, status: str, seconds: float) -> RunOutcome:
        return RunOutcome(
            corpus=masked(self.settings.corpus.root),
            kind=self.kind,
            status=status,
            ended_at=datetime.now(UTC),
            seconds=seconds,
            sources=self._keys(),
            fresh=frozenset(),
            seconds_by_stage=self.seconds,
            costs=self.costs,
            version=self.version,
        )

    def _keys(self, *, whole: bool = False) -> frozenset[SourceKey]:
        """Return the sources of the run; with `whole`, those of which it covers everything."""
        scopes = (scope for scope in self.scopes if not (whole and (scope.prefix or scope.paths)))
        return frozenset((scope.namespace, masked(scope.name)) for scope in scopes)


@contextmanager
def watched(settings: Settings, kind: str) -> Iterator[RunWatch]:
    """Watch a run: an error that leaves the block is told as its outcome."""
    watch = RunWatch(settings, kind)
    with watch.open, watch.spans:
        watch.begin_trace()
        try:
            yield watch
        except (Exception, KeyboardInterrupt) as error:
            # Anything else suspends a flow run: it goes on later.
            if not watch.is_told:
                watch.failed(error)
            raise


def _status(error: BaseException | None) -> str:
    if error is None:
        return "completed"
    if isinstance(error, KeyboardInterrupt):
        return "cancelled"
    return next((status for kind, status in _STATUS if isinstance(error, kind)), "failed")
