"""What every flow does: find its settings and its caller, end with who started it, be found in the UI."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from prefect import get_run_logger, runtime, tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import CancelledRun, TerminationSignal
from prefect.states import Cancelled as CancelledState
from prefect.states import Completed, Failed
from prefect.utilities.engine import is_prefect_sigterm_handler_installed

from parquetry.errors import IndexNotWritten, ParquetryError, RefusedError
from parquetry.flows.orchestration.guarded import end_with_starter
from parquetry.masked_output import guard_output
from parquetry.printing import visible
from parquetry.settings.sections import Settings, load_settings, override
from parquetry.sources.registry import Scope
from parquetry.tasks.documents.run import Cancelled

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

Asked = TypeVar("Asked")
Watcher = TypeVar("Watcher")
Report = TypeVar("Report")

TAG = "parquetry"
"""of every run and deployment; automations wait for it"""
_OWN_PROCESS = "PREFECT__FLOW_RUN_ID"
"""environment variable that Prefect sets where a worker or service started this process for one flow run"""
_HOOK_SECONDS = 0.1
"""for `sys.unraisablehook` to return"""


@dataclass
class Caller(Generic[Asked, Watcher, Report]):
    """A program that runs a flow in its own process: what it asks for, who watches, what came of it."""

    request: Asked
    observer: Watcher
    alone: bool
    """whether the API serves this run only, so that there is nobody to wait for"""
    report: Report | None = None
    stopped: Cancelled | None = None

    def told(self) -> Report:
        """The report of the flow that has run."""
        if self.report is None:
            raise RuntimeError("the flow ended without a report")
        return self.report


C = TypeVar("C", bound=Caller[Any, Any, Any])


@contextmanager
def calling(variable: ContextVar[C | None], caller: C) -> Iterator[None]:
    """Let the flow that runs in the block find its caller, and have its tag from the start.

    Prefect's server takes a run's tags for all its events from its first one; a tag that it gets later is in none.

    Raises:
        Cancelled: somebody cancelled the run.
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


def cancelled(caller: Caller[Any, Any, Any] | None, why: Cancelled) -> State[Any]:
    """The final state of a run that was cancelled, of which its caller is told."""
    if caller:
        caller.stopped = why
    return CancelledState(message=visible(str(why)))


def refused(error: RefusedError) -> State[Any]:
    """The final state of a run that a guard or a budget stopped: failed, under a name that automations can tell apart.

    Prefect emits `prefect.flow-run.Refused` for it. Whoever called the flow gets the error.
    """
    return Failed(name="Refused", message=visible(str(error)), data=error)


def failed(error: ParquetryError) -> State[Any]:
    """The final state of a run that failed. Prefect would repeat the names in the error as they are.

    Whoever called the flow gets the error.
    """
    return Failed(message=visible(f"Flow run encountered an exception: {type(error).__name__}: {error}"), data=error)


def without_index(error: str) -> State[Any]:
    """The final state of a run that has published, and whose search index could not follow: failed, under a name.

    Prefect emits `prefect.flow-run.Unindexed` for it. Whoever called the flow gets the error.
    """
    return Failed(name="Unindexed", message=visible(error), data=IndexNotWritten(error))


def nothing_scheduled(settings: Settings, content: Literal["documents", "sessions"]) -> State[Any] | None:
    """The final state of a scheduled run over all sources of a kind where the settings have other sources alone.

    A schedule for all sources, as in `prefect.yaml`, must not fail every night for that.

    Returns:
        Completed, saying so; None where there is something to do, or the run was asked for.
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
    """The settings of a flow run.

    Args:
        config: settings file; None for parquetry.toml in the working folder.
        corpus: folder of the corpus, over what the file says.

    Raises:
        SettingsError: as `load_settings`.
    """
    settings = load_settings(config)
    return override(settings, {"corpus": {"root": corpus}}) if corpus else settings


def begin() -> None:
    """Tie a process that was started for one flow run to that run, and keep secrets out of its log."""
    guard_output()
    if _OWN_PROCESS in os.environ:
        end_with_starter()


def _hush() -> None:
    """Let the end of a flow run's process be silent.

    Prefect's daemon threads keep objects of DuckDB alive to the very end, which its binding layer then reports as
    leaks, a hundred lines in the worker's log after every run.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _heed_termination() -> None:
    """Send SIGTERM again where Python ignored it.

    Prefect's handler raises, and what is raised while an object is being deleted is printed and forgotten: the run
    would go on to its end.
    """
    tell_of_ignored = sys.unraisablehook
    ignored_signals: SimpleQueue[None] = SimpleQueue()

    def send_again() -> None:
        while True:
            ignored_signals.get()
            # In the hook it would be ignored again.
            time.sleep(_HOOK_SECONDS)
            if is_prefect_sigterm_handler_installed():
                os.kill(os.getpid(), signal.SIGTERM)

    def heed(ignored: UnraisableHookArgs) -> None:
        if isinstance(ignored.exc_value, TerminationSignal):
            ignored_signals.put(None)
        else:
            tell_of_ignored(ignored)

    threading.Thread(target=send_again, name="ignored-signals", daemon=True).start()
    sys.unraisablehook = heed


# As soon as DuckDB is there: a run may be ended before it begins.
if _OWN_PROCESS in os.environ:
    atexit.register(_hush)
    _heed_termination()


def tag(scopes: Sequence[Scope]) -> None:
    """Runs are found in the UI by their namespaces and sources, whatever started them."""
    found_by = {f"namespace:{scope.namespace}" for scope in scopes} | {f"source:{scope.name}" for scope in scopes}
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(runtime.flow_run.id)
        client.update_flow_run(run.id, tags=sorted({*run.tags, *found_by, TAG}))
