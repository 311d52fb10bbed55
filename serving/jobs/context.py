"""The context that everything that carries out jobs shares, and the failures of jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parquetry.errors import (
    BudgetReached,
    DiskFull,
    DocumentError,
    IndexNotWritten,
    OutageError,
    ParquetryError,
    PublishConflict,
    RefusedError,
    ServiceRefused,
    SettingsError,
    StorageError,
    TransientError,
    classify,
)
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.state.workers import wait_until_followed
from parquetry.settings.sections import Settings
from parquetry.sources.registry import Scope

if TYPE_CHECKING:
    from parquetry.sources.uploads.store import UploadStore

log = logging.getLogger("parquetry")
FOLLOW_SECONDS = 60.0
"""seconds that the processes which answer requests have to follow a publish"""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (OutageError, "outage"),
    (ServiceRefused, "outage"),
    (BudgetReached, "budget"),
    (RefusedError, "refused"),
    (DiskFull, "disk-full"),
    (IndexNotWritten, "index-not-written"),
    (PublishConflict, "conflict"),
    (SettingsError, "settings"),
    (StorageError, "storage"),
)
"""kinds of errors -> reason of a job, the first that fits"""


class Stoppable:
    """Work of one kind, which is stopped together."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        """set when no further work of this kind is begun"""
        self._engines: set[StoppableEngine] = set()

    @contextmanager
    def engine(self) -> Iterator[StoppableEngine]:
        """Make an engine that is stopped with the others."""
        engine = StoppableEngine()
        self._engines.add(engine)
        try:
            if self.stopping.is_set():
                engine.stop()
            yield engine
        finally:
            self._engines.discard(engine)
            engine.is_done.set()

    def stop(self) -> None:
        """Begin nothing more, and stop the work in progress at its next safe point."""
        self.stopping.set()
        for engine in list(self._engines):
            engine.stop()


@dataclass(frozen=True, slots=True)
class JobContext:
    """The context that everything that carries out jobs shares."""

    settings: Settings
    state: Path
    """state folder of the service"""
    store: JobStore
    uploads: UploadStore
    scopes: tuple[Scope, ...] = ()
    """sources that the command line names, instead of those in the settings"""
    tell: Callable[[str], None] = lambda _: None
    """receives a line for the terminal"""
    observer: Callable[[], Observer] = Observer
    """makes an observer that shows a run on the terminal"""
    one_run: threading.Lock = field(default_factory=threading.Lock)
    """held by runs over whole sources"""
    runs: Stoppable = field(default_factory=Stoppable)
    """the runs over whole sources"""
    writes: Stoppable = field(default_factory=Stoppable)
    """the runs for small writes"""

    def note(self, job: Job, progress: Mapping[str, Any]) -> bool:
        """Record the progress of a running job, if that is possible; return True if it is to be cancelled."""
        try:
            return self.store.progress(job.id, progress)
        except StorageError as error:
            log.warning("the progress of %s is not recorded: %s", job.id, error)
            return False

    def is_cancelled(self, job: Job) -> bool:
        """Return True if a running job is to be cancelled; False as long as that cannot be read."""
        try:
            return self.store.cancel_is_asked(job.id)
        except StorageError:
            return False

    def follow(self, version: int) -> None:
        """Wait until every process that answers requests follows a version.

        Raises:
            Failed: one of them does not.
        """
        if not wait_until_followed(self.state, version, FOLLOW_SECONDS):
            raise Failed(
                "not-followed",
                f"version {version} is published, but a process that answers requests still has an earlier one after "
                f"{FOLLOW_SECONDS:g} s; its log tells why. It follows as soon as it can",
            )


class Failed(Exception):
    """Failure of a job.

    Args:
        reason: code in kebab-case.
        detail: one sentence, and what to do.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class PutBack(Exception):
    """The process stops, and what carries out the job goes on without it."""


def failure_of(error: Exception) -> Failed:
    """Return the failure of the job in which an error occurred."""
    if isinstance(error, Failed):
        return error
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return Failed(reason, str(error))
    if isinstance(error, TransientError | DocumentError | OSError):
        verdict = classify(error)
        return Failed(verdict.reason, verdict.detail)
    if isinstance(error, ParquetryError):
        return Failed("stopped", str(error))
    return Failed("internal", f"{classify(error).detail}; the log of the service has more")
