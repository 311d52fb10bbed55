"""The steps of every run: open sources and corpus, plan, process, publish, record, update the search index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Generic, TypeVar

from parquetry.errors import (
    FilesGaveWay,
    IndexNotWritten,
    OutageError,
    ServiceRefused,
    StorageError,
    TransientError,
)
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.run_record import record, record_failure, time_columns
from parquetry.flows.pipelines.run_watch import RunWatch
from parquetry.planning.costs import from_column
from parquetry.planning.report import RunReport
from parquetry.planning.rows import new_stamp
from parquetry.settings.sections import Settings
from parquetry.sources.base import Source
from parquetry.sources.registry import Scope, open_source
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread
from parquetry.tasks.context import RunContext, give_freed_memory_back
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.models import models_of
from parquetry.tasks.engine.base import Engine
from parquetry.tasks.engine.retries import Retries
from parquetry.telemetry import tracing
from parquetry.waiting import Waits

if TYPE_CHECKING:
    from parquetry.sessions.report import SessionsReport

Result = TypeVar("Result")
Opened = TypeVar("Opened", bound=RunContext)
Plan = TypeVar("Plan")
Work = TypeVar("Work")
Outcome = TypeVar("Outcome")
Report = TypeVar("Report", RunReport, "SessionsReport")


def check_places(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Check that sources and corpus can be opened, without creating anything.

    Raises:
        ParquetryError: as for `open_run`.
    """
    for scope in scopes:
        open_source(scope, settings.corpus.root)
    if Lake.exists(settings.corpus.root):
        Lake(settings.corpus.root)


def open_run(make: Callable[..., Opened], settings: Settings, scopes: Sequence[Scope], kind: str) -> Opened:
    """Start a run over some sources; a missing corpus is created only when there is something to store.

    Args:
        make: creates the run from the fields of its context.
        settings: settings of the corpus.
        scopes: scopes of the run.
        kind: kind of run, as in the table `runs`.

    Raises:
        OutageError: an embedding service failed when asked for its vector length; the run is recorded.
        ParquetryError: a source or the corpus cannot be opened.
    """
    started = perf_counter()
    lake = Lake(settings.corpus.root, create=True, at_once=False, single_writer=settings.corpus.single_writer)
    run = make(
        settings=settings,
        stamp=new_stamp(),
        lake=lake,
        base=lake.snapshot(),
        sources=sources_of(settings, scopes),
        scopes={(scope.namespace, scope.name): scope for scope in scopes},
        models={},
    )
    try:
        run.models = models_of(settings, (scope.namespace for scope in scopes))
    except (TransientError, ServiceRefused) as error:
        outage = OutageError(f"the embedder cannot be opened: {error}")
        with run:
            record_failure(run, kind, perf_counter() - started, outage, {})
        raise outage from error
    return run


def sources_of(settings: Settings, scopes: Sequence[Scope]) -> dict[tuple[str, str], Source]:
    """Open the sources of some scopes.

    Returns:
        (namespace, name) -> source.
    """
    return {(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes}


@contextmanager
def fetching_without_run(
    settings: Settings, scopes: Sequence[Scope]
) -> Iterator[tuple[list[tuple[Scope, Source]], Fetching, Retries]]:
    """Open the sources of a plan that no run follows; yield them with their fetches and retries."""
    sources, retries = sources_of(settings, scopes), Retries(settings.refresh.attempts, sleep)
    by_name = {(scope.namespace, scope.name): scope for scope in scopes}
    fetching = Fetching(sources, by_name, retries, sleep, Waits())
    try:
        yield [(scope, sources[scope.namespace, scope.name]) for scope in scopes], fetching, retries
    finally:
        fetching.close()


class Pipeline(ABC, Generic[Opened, Plan, Work, Outcome, Report]):
    """The steps of a run of one kind.

    Args:
        run: the run in progress.
        watch: times the steps and tells the outcome; has the kind of the run, as in the table `runs`.
        observer: receives progress.
    """

    def __init__(self, run: Opened, watch: RunWatch, observer: Observer) -> None:
        self.run = run
        self.kind = watch.kind
        self.watch = watch
        self.observer = observer
        self.indexed: int | None = None
        """version whose index was opened and read for the plan; None if none was"""

    @abstractmethod
    def plan(self) -> Plan:
        """List the sources and decide what to do; check guards and the budget."""

    @abstractmethod
    def process(self, plan: Plan, engine: Engine) -> Work:
        """Process the batches of the plan."""

    @abstractmethod
    def publish(self, plan: Plan, work: Work) -> Outcome:
        """Make the results visible, all in one commit."""

    @abstractmethod
    def report(self, plan: Plan, work: Work, outcome: Outcome, seconds: float) -> Report:
        """Return the report of the published run."""

    @abstractmethod
    def columns(self, report: Report) -> Mapping[str, object]:
        """Return the columns of `runs` specific to this kind of run."""

    def columns_of_failure(self) -> Mapping[str, object]:
        """Return the columns of `runs` that are known of a run that published nothing."""
        return {}

    def is_failure(self, error: BaseException) -> bool:  # noqa: ARG002 - overridden
        """True if an exception that leaves the run is recorded as its failure."""
        return True

    def execute(self, engine: Engine) -> Report:
        """Plan, process, publish, report, record, and update the search index.

        Args:
            engine: runs the steps and batches.

        Raises:
            ParquetryError: nothing was published.
        """
        self.watch.begin(self.run.stamp.run_id, self.run.base.version)
        report: Report
        unrecorded: tuple[str, ...]
        report, unrecorded = self._published(engine)
        # The plan, the rows and the extraction processes are gone, and their memory is free. Not a step of the engine:
        # a published run can no longer be cancelled.
        if self.run.gave_memory_back:
            give_freed_memory_back()
        with self.watch.step("index"):
            seconds, index_error = refresh_index(self.run, self.indexed)
        return replace(
            report,
            seconds=report.seconds + seconds,
            warnings=(*report.warnings, *unrecorded),
            index_error=index_error,
            seconds_by_stage={**report.seconds_by_stage, "index": seconds},
        )

    def _published(self, engine: Engine) -> tuple[Report, tuple[str, ...]]:
        """Plan, process, publish and record; return the report, and the errors of recording."""
        run, watch = self.run, self.watch
        run.gate = engine.gate
        with run:
            try:
                with watch.step("plan"):
                    plan = engine.step("plan", lambda: from_newest(run, self.plan))
                with watch.step("process"):
                    run.trace = tracing.current()
                    work = self.process(plan, engine)
                with watch.step("publish"):
                    outcome = engine.step("publish", lambda: self.publish(plan, work))
                watch.is_published = True
            except BaseException as error:
                if self.is_failure(error):
                    columns = {**self.columns_of_failure(), **time_columns(watch.seconds, run.slowest.all)}
                    watch.costs = from_column(str(columns.get("costs") or "[]"))
                    record_failure(run, self.kind, watch.elapsed, error, columns)
                raise
            report: Report = self.report(plan, work, outcome, watch.elapsed)
            seconds = {**watch.seconds, **report.seconds_by_stage}
            report = replace(report, seconds_by_stage=seconds, slowest=run.slowest.all)
            with watch.step("record"):
                return report, record(run, self.kind, report, self.columns(report))


def from_newest(run: RunContext, read: Callable[[], Result]) -> Result:
    """Return the result of a read of the run's base version; of a newer version if its files were replaced."""

    def again() -> Result:
        try:
            return read()
        except FilesGaveWay:
            run.base = run.lake.snapshot()
            raise

    return reread(again)


def _bring(run: RunContext, indexed: int | None) -> None:
    snapshot = run.lake.snapshot()
    if snapshot.version != indexed:
        bring_index(snapshot, run.settings.search)


def refresh_index(run: RunContext, indexed: int | None = None) -> tuple[float, str | None]:
    """Update the search index to the published version; a failure does not undo what is published.

    Args:
        run: the run.
        indexed: version whose index is known to be there, and is not opened again.

    Returns:
        Duration in seconds, and an error message with a remedy; None on success.
    """
    started = perf_counter()
    wrong: str | None = None
    try:
        reread(lambda: _bring(run, indexed))
    except IndexNotWritten as error:
        wrong = str(error)
    except StorageError as error:
        wrong = f"{error}; the next search or refresh builds it"
    return perf_counter() - started, wrong
