"""Flow runs of every kind: request, caller, lock, final state, tags, termination."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from prefect import get_run_logger, runtime, tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import CancelledRun, TerminationSignal
from prefect.states import Cancelled as CancelledState
from prefect.states import Completed, Failed
from prefect.utilities.engine import is_prefect_sigterm_handler_installed

from parquetry.errors import IndexNotWritten, OutageError, ParquetryError, RefusedError, RunSuspended
from parquetry.flows.orchestration.namespace_lock import one_run_at_a_time
from parquetry.flows.orchestration.parameters import PARAMETERS, Parameters
from parquetry.flows.orchestration.parent_watch import end_with_starter
from parquetry.flows.orchestration.progress import RunProgress
from parquetry.flows.orchestration.run_events import Published, emit_refusal, emit_report
from parquetry.flows.orchestration.run_log import RunLog, tasks_log_to_run
from parquetry.flows.orchestration.server_values import bring_secrets, config_of_run
from parquetry.flows.pipelines.observer import Observer
from parquetry.freed_memory import keep_little
from parquetry.garbage import collect_seldom
from parquetry.masked_output import guard_output, masked_errors
from parquetry.planning.report import RunError
from parquetry.printing import visible
from parquetry.settings.sections import Settings, load_settings, override
from parquetry.sources.registry import Scope
from parquetry.storage.files.layout import layout_of
from parquetry.swallowed_signals import send_swallowed_again
from parquetry.tasks.engine.base import Cancelled, Engine
from parquetry.tasks.engine.prefect import PrefectEngine

C = TypeVar("C", bound="FlowCaller[Any, Any]")

TAG = "parquetry"
"""tag of every run and deployment; automations filter by it"""
OWN_STATES = REFUSED, UNINDEXED, AWAITS_BATCH = "Refused", "Unindexed", "AwaitsBatch"
"""names of the final states that Prefect does not have"""
_OWN_PROCESS = "PREFECT__FLOW_RUN_ID"
"""environment variable set by Prefect when a worker or service started this process for a single flow run"""


class RequestLike(Protocol):
    """A request for a run of any kind."""

    @property
    def settings(self) -> Settings: ...

    @property
    def is_for_all(self) -> bool:
        """True if the request names no sources: it is for all that are configured."""
        ...


class ReportLike(Published, Protocol):
    """A report of a run of any kind, with its error."""

    @property
    def error(self) -> RunError | None: ...


Asked = TypeVar("Asked", bound=RequestLike)
Report = TypeVar("Report", bound=ReportLike)


@dataclass
class FlowCaller(Generic[Asked, Report]):
    """A program that runs a flow in its own process: its request, observer and the resulting report."""

    request: Asked
    observer: Observer
    alone: bool
    """True if the API serves this run only, so that no other run can hold its namespaces"""
    report: Report | None = None
    stopped: Cancelled | None = None


@dataclass(frozen=True)
class FlowKind(Generic[Asked, Report]):
    """The parts of a flow that differ between kinds of runs."""

    content: Literal["documents", "sessions"]
    lock: str
    """name of the lock of a namespace; empty for the one of its documents"""
    scopes: Callable[[Asked], Sequence[Scope]]
    execute: Callable[[Asked, Engine, Observer], Report]
    create_artifacts: Callable[[Report, Asked, Collection[str]], None]
    """creates artifacts for a report in the given namespaces"""


def run_flow(
    kind: FlowKind[Asked, Report], caller: FlowCaller[Asked, Report] | None, parse: Callable[[], Asked]
) -> dict[str, Any] | State[Any]:
    """Run a request inside a flow run.

    Args:
        kind: kind of the run.
        caller: program that runs the flow in its own process; None in a process of the flow run.
        parse: returns the request of a run without a caller.

    Returns:
        The report as JSON, or the final state of a run that failed, was cancelled, or had nothing to do.
    """
    begin()
    root, namespaces = None, set[str]()
    try:
        request = caller.request if caller else parse()
        root = layout_of(request.settings.corpus.root).root
        if not caller and request.is_for_all and (idle := nothing_scheduled(request.settings, kind.content)):
            return idle
        scopes = kind.scopes(request)
        tag(scopes)
        namespaces = {scope.namespace for scope in scopes}
        alone = caller is not None and caller.alone
        held = set() if alone else namespaces
        with (
            masked_errors(),
            tasks_log_to_run(),
            one_run_at_a_time(root, held, kind.lock),
            _watcher(caller.observer if caller else Observer(), namespaces, alone=alone) as watcher,
        ):
            report = kind.execute(request, PrefectEngine(request.settings.run), RunLog(watcher))
    except Cancelled as stopped:
        return cancelled(caller, stopped)
    except RefusedError as error:
        if root is not None:
            emit_refusal(error, root, namespaces)
        return refused(error)
    except ParquetryError as error:
        return failed(error)
    kind.create_artifacts(report, request, namespaces)
    emit_report(report, root, namespaces)
    if caller:
        caller.report = report
    match report.error:
        case OutageError() as problem:
            return failed(problem)
        case RefusedError() as problem:
            emit_refusal(problem, root, namespaces)
            return refused(problem)
        case IndexNotWritten() as problem:
            return without_index(str(problem))
        case RunSuspended() as problem:
            return suspended(problem, report.as_json())
    return report.as_json()


def _watcher(observer: Observer, namespaces: Collection[str], *, alone: bool) -> AbstractContextManager[Observer]:
    """Return an observer of a run that shows its progress on the server, too, if anybody may look there."""
    return nullcontext(observer) if alone else RunProgress(observer, namespaces)


def run_in_process(
    variable: ContextVar[FlowCaller[Asked, Report] | None], caller: FlowCaller[Asked, Report], start: Callable[[], Any]
) -> Report:
    """Start a flow that runs for a caller in this process.

    Args:
        variable: where the flow finds its caller.
        caller: the caller.
        start: calls the flow.

    Returns:
        The report, also of a run that published and failed.

    Raises:
        ParquetryError: nothing was published.
    """
    try:
        with _calling(variable, caller):
            start()
    except (OutageError, RefusedError, IndexNotWritten):
        if caller.report is None:
            raise
    if caller.report is None:
        raise RuntimeError("the flow ended without a report")
    return caller.report


@contextmanager
def _calling(variable: ContextVar[C | None], caller: C) -> Iterator[None]:
    """Make the caller available to the flow that runs in the block, and tag its run from the start.

    Prefect's server tags all events of a run as it was tagged at the first one; a tag added later is in none.

    Raises:
        Cancelled: the run was cancelled.
    """
    token = variable.set(caller)
    try:
        with tags(TAG):
            yield
    except CancelledRun:
        if caller.stopped is None:
            raise
        raise caller.stopped from None
    finally:
        variable.reset(token)


def run_name() -> str:
    """Return the name of the current flow run: `{flow}-{namespace, targets or all}-{scheduled start}`."""
    run = runtime.flow_run
    given = run.parameters.get("parameters") or {}
    parameters = given if isinstance(given, Parameters) else PARAMETERS[run.flow_name].model_validate(given)
    return f"{run.flow_name}-{visible(parameters.subject())}-{run.scheduled_start_time:%Y%m%d-%H%M%S}"


def cancelled(caller: FlowCaller[Any, Any] | None, why: Cancelled) -> State[Any]:
    """Return the final state of a cancelled run, and pass the cause to its caller."""
    if caller:
        caller.stopped = why
    return CancelledState(message=visible(str(why)))


def refused(error: RefusedError) -> State[Any]:
    """Return the final state of a run stopped by a guard or a budget: failed, named for automations.

    Prefect emits `prefect.flow-run.Refused` for it. The flow's caller receives the error.
    """
    return Failed(name=REFUSED, message=visible(str(error)), data=error)


def failed(error: ParquetryError) -> State[Any]:
    """Return the final state of a failed run, with control characters in names made visible, unlike Prefect's own.

    The flow's caller receives the error.
    """
    return Failed(message=visible(f"Flow run encountered an exception: {type(error).__name__}: {error}"), data=error)


def without_index(error: str) -> State[Any]:
    """Return the final state of a run that published without a new search index: failed, named for automations.

    Prefect emits `prefect.flow-run.Unindexed` for it. The flow's caller receives the error.
    """
    return Failed(name=UNINDEXED, message=visible(error), data=IndexNotWritten(error))


def suspended(why: RunSuspended, told: dict[str, Any]) -> State[Any]:
    """Return the final state of a run that waits for a batch at a service: completed, named for automations.

    Prefect emits `prefect.flow-run.AwaitsBatch` for it. The next scheduled run goes on.
    """
    return Completed(name=AWAITS_BATCH, message=visible(str(why)), data=told)


def nothing_scheduled(settings: Settings, content: Literal["documents", "sessions"]) -> State[Any] | None:
    """Return the final state of a scheduled run over all sources of a kind, if the settings have only other sources.

    A schedule for all sources, as in `prefect.yaml`, must not fail every night because of that.

    Returns:
        Completed, with a message; None if there is something to do, or the run is not a scheduled one.
    """
    if not settings.source or any(source.content == content for source in settings.source):
        return None
    with get_client(sync_client=True) as client:
        if not client.read_flow_run(runtime.flow_run.id).auto_scheduled:
            return None
    message = f'Nothing to do: no source with content = "{content}" is configured.'
    get_run_logger().info(message)
    return Completed(message=message)


def settings_of_run(config: str | None, corpus: str | None) -> Settings:
    """Load the settings of a flow run; that of a deployment takes file and secrets from the Prefect server, if there.

    Args:
        config: settings file; None for the server's, or parquetry.toml in the working directory.
        corpus: folder of the corpus; overrides the file.

    Raises:
        SettingsError: as for `load_settings`.
    """
    if _OWN_PROCESS in os.environ:
        bring_secrets()
        config = config_of_run(config)
    settings = load_settings(config)
    return override(settings, {"corpus": {"root": corpus}}) if corpus else settings


def begin() -> None:
    """Keep secrets out of a flow's log, and adjust the process of a single run: its end, its memory, its pace."""
    guard_output()
    if _OWN_PROCESS in os.environ:
        end_with_starter()
    # A flow of somebody else's may have called this one: the process is theirs.
    if os.environ.get(_OWN_PROCESS) == runtime.flow_run.id:
        keep_little()
        collect_seldom()


def _hush() -> None:
    """Silence stderr at the end of a flow run's process.

    Prefect's daemon threads keep DuckDB objects alive until exit. DuckDB's binding layer then reports them as leaks, a
    hundred lines in the worker's log after every run.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# As soon as DuckDB is imported: a run may be stopped before it begins.
if _OWN_PROCESS in os.environ:
    atexit.register(_hush)
    # Prefect's handler raises.
    send_swallowed_again(signal.SIGTERM, TerminationSignal, is_prefect_sigterm_handler_installed)


def tag(scopes: Sequence[Scope]) -> None:
    """Tag the run with its namespaces and sources, so that the UI finds it however it was started."""
    found_by = {f"namespace:{scope.namespace}" for scope in scopes} | {f"source:{scope.name}" for scope in scopes}
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(runtime.flow_run.id)
        client.update_flow_run(run.id, tags=sorted({*run.tags, *found_by, TAG}))
