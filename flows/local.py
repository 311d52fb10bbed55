"""Flow runs started from the command line, on the configured Prefect API or a bundled server."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from parquetry.flows.orchestration.server import ENVIRONMENT, HEARTBEAT, HEARTBEAT_SECONDS, own_server
from parquetry.flows.pipelines.documents import Request, check_request
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

    from parquetry.flows.pipelines.migration_plan import MigrationRequest
    from parquetry.flows.pipelines.sessions import SessionsRequest
    from parquetry.sessions.report import SessionsReport
    from parquetry.tasks.sessions.publish import Review

_DRAIN_SECONDS = 5


def run_on_prefect(request: Request, observer: Observer, *, verbose: bool) -> RunReport:
    """Run a request as a Prefect flow run in this process.

    Without `PREFECT_API_URL` (in the environment or the active profile) a server is started for this run only.

    Args:
        request: request to run.
        observer: receives progress.
        verbose: True to show Prefect's log on stderr.

    Raises:
        ParquetryError: nothing was published.
    """
    check_request(request)
    with _prefect(verbose=verbose) as alone:
        from parquetry.flows.refresh import run_request

        return run_request(request, observer, alone=alone)


def run_sessions_on_prefect(
    request: SessionsRequest, observer: Observer, review: Review | None, *, verbose: bool
) -> SessionsReport:
    """Learn from sessions as a Prefect flow run in this process, as in `run_on_prefect`.

    Args:
        request: request to run.
        observer: receives progress.
        review: asks for approval of merges; None to publish without review.
        verbose: True to show Prefect's log on stderr.

    Raises:
        ParquetryError: nothing was published.
    """
    from parquetry.flows.pipelines.sessions import check_sessions_request

    check_sessions_request(request)
    with _prefect(verbose=verbose) as alone:
        from parquetry.flows.sessions import run_sessions_request

        return run_sessions_request(request, observer, review, alone=alone)


def run_migration_on_prefect(request: MigrationRequest, observer: Observer, *, verbose: bool) -> RunReport:
    """Build a migration, or switch to it, as a Prefect flow run in this process, as in `run_on_prefect`.

    Args:
        request: request to run.
        observer: receives progress.
        verbose: True to show Prefect's log on stderr.

    Raises:
        ParquetryError: nothing was published.
    """
    from parquetry.flows.pipelines.migration_plan import planned_migration
    from parquetry.storage.lake.lake import Lake

    planned_migration(request, Lake(request.settings.corpus.root).snapshot())
    with _prefect(verbose=verbose) as alone:
        from parquetry.flows.migration import run_migration_request

        return run_migration_request(request, observer, alone=alone)


@contextmanager
def _prefect(*, verbose: bool) -> Iterator[bool]:
    """Use Prefect in this process; yield True if its API serves this run only."""
    os.environ.update({key: value for key, value in ENVIRONMENT.items() if key not in os.environ})
    # As often as any server's automation may expect it.
    os.environ.setdefault(HEARTBEAT, str(HEARTBEAT_SECONDS))
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO" if verbose else "CRITICAL")
    with _api() as alone:
        from prefect.events.worker import EventsWorker
        from prefect.logging.handlers import APILogWorker

        try:
            yield alone
        finally:
            # The last log lines and task states have to arrive before the server stops.
            APILogWorker.drain_all(timeout=_DRAIN_SECONDS)
            EventsWorker.drain_all(timeout=_DRAIN_SECONDS)


def api_is_configured() -> bool:
    """Return True if the environment or the active profile names a Prefect API."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    try:
        if "PREFECT_API_URL" not in (home / "profiles.toml").read_text("utf-8"):
            return False
    except OSError:
        return False
    from prefect.settings import PREFECT_API_URL

    return bool(PREFECT_API_URL.value())


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """Re-raise an interrupt swallowed by an import: libraries catch everything around optional imports."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    previous = signal.getsignal(signal.SIGINT)

    def remember(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        if callable(previous):
            previous(number, frame)

    previous_hook = sys.unraisablehook

    def report_other(failed: UnraisableHookArgs) -> None:
        if not isinstance(failed.exc_value, KeyboardInterrupt):
            previous_hook(failed)

    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = report_other
    try:
        yield
    finally:
        sys.unraisablehook = previous_hook
        signal.signal(signal.SIGINT, previous)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def _api() -> Iterator[bool]:
    """Use the configured API or a bundled server; yield True if it serves this run only."""
    if api_is_configured():
        yield False
        return
    with own_server() as server:
        with _keeping_interrupts():
            # The server takes seconds to start; meanwhile Prefect's import takes two.
            from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

            import parquetry.flows.refresh
            import parquetry.flows.sessions  # noqa: F401

        server.wait()
        # This server keeps no heartbeats, and Prefect's thread for them ends up to a second after the flow run.
        with temporary_settings({PREFECT_API_URL: server.api_url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            yield True
