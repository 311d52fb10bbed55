"""Run batches in this process or as Prefect tasks. The code that composes a run knows only the Protocol."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from parquetry.embed.base import Gate, no_gate
from parquetry.errors import DiskFull, ParquetryError, Verdict, classify
from parquetry.settings.sections import Settings
from parquetry.tasks.engine.retries import Retries, may_pass
from parquetry.threads import threads_of

Result = TypeVar("Result")
log = logging.getLogger("parquetry")
ATTEMPTS = 3
"""attempts at a batch whose failure may be temporary"""
_GRACE_SECONDS = 2
"""seconds for running batches to notice that the run is over; one that waits for a service is abandoned"""

_LOOK_SECONDS = 0.5
"""seconds between two checks for cancellation while no batch ends"""


class Cancelled(ParquetryError):
    """The run was cancelled; nothing was published."""


class RunLike(Protocol):
    """The run that batches belong to."""

    cancelled: threading.Event
    """set to stop between items"""
    retries: Retries

    def check_cancelled(self) -> None:
        """Raise Cancelled if the run was cancelled."""
        ...


class BatchLike(Protocol):
    """A batch of any kind."""

    @property
    def number(self) -> int:
        """Position in the run, 0-based."""
        ...

    @property
    def host(self) -> str:
        """Service that the batch is read from; empty for this machine."""
        ...


Work = TypeVar("Work", bound=BatchLike)
Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class RemoteBatches(Generic[Work, Report]):
    """The functions that have batches of one kind processed by other processes, with JSON between them."""

    settings: Settings
    """settings of the run"""
    order: Callable[[Work], str | None]
    """returns what another process needs to process a batch; None for a batch that only the run's own can process"""
    carry_out: Callable[[str, Settings, Gate], str]
    """processes the batch of an order in another process, and returns its report; a function of a module"""
    receive: Callable[[str], Report]
    """returns the report of a batch, and adds what it did to the counts of the run"""
    lost: Callable[[Work], None]
    """ends the order of a batch of which no report comes"""


@dataclass(frozen=True, slots=True)
class BatchHandler(Generic[Work, Report]):
    """The functions that handle batches of one kind."""

    process: Callable[[Work], Report]
    """processes a batch; contains the failure of every single item"""
    failed: Callable[[Work, Exception], Report]
    """returns the report of a batch that failed as a whole; raises what concerns the whole run"""
    concurrency: int
    """concurrent batches of one service"""
    run: RunLike
    remote: RemoteBatches[Work, Report] | None = None
    """None for batches that only the run's own process can process"""


class Engine(Protocol):
    """An engine that runs the parts of a run."""

    @property
    def gate(self) -> Gate:
        """The limits on requests to services."""
        ...

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        """Run one part by itself, under a name for logs."""
        ...

    def batches(self, batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Iterator[Report]:
        """Process batches concurrently and yield each report as it arrives.

        A batch that keeps failing yields the report of the handler's `failed`; only errors that concern the whole run
        are raised.
        """
        ...


class HostQueues(Generic[Work]):
    """Queues of batches, one for each service that they are read from: a slow service delays only its own batches.

    Args:
        batches: all batches of a run.
        concurrency: concurrent batches of one service.
    """

    def __init__(self, batches: Iterable[Work], concurrency: int) -> None:
        self._waiting: dict[str, deque[Work]] = defaultdict(deque)
        for batch in batches:
            self._waiting[batch.host].append(batch)
        self._concurrency = concurrency

    @property
    def threads(self) -> int:
        """Maximum number of batches in work concurrently."""
        return max(1, self._concurrency * len(self._waiting))

    def first(self) -> list[Work]:
        """Return the batches to begin with."""
        queues = self._waiting.values()
        return [queue.popleft() for queue in queues for _ in range(min(self._concurrency, len(queue)))]

    def after(self, done: Work) -> list[Work]:
        """Return the batch to start when another is done, if one is left."""
        queue = self._waiting[done.host]
        return [queue.popleft()] if queue else []


def verdict_of_failed_batch(number: int, error: Exception, *, is_outage: bool = False) -> Verdict:
    """Return the verdict on each item of a batch that failed as a whole: the next run retries all of them.

    Args:
        number: number of the batch.
        error: error that ended it.
        is_outage: True if a failed service is behind the error, which ends only the sources that need it.

    Raises:
        DiskFull: there is no space left on a disk.
        ParquetryError: `error` itself, if it concerns the whole run.
    """
    verdict = classify(error)
    if verdict.reason == "disk-full":
        raise DiskFull(f"{verdict.detail}; nothing was published") from error
    if verdict.fate == "stop" and not is_outage:
        raise error
    log.warning("batch %d failed: %s", number, verdict.detail)
    return replace(verdict, fate="retry")


class DirectEngine:
    """Run everything in threads of this process, without a service."""

    gate: Gate = staticmethod(no_gate)

    def step(self, name: str, function: Callable[[], Result]) -> Result:  # noqa: ARG002 - the name is for engines that log
        return function()

    def batches(self, batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Iterator[Report]:
        queues = HostQueues(batches, handler.concurrency)
        with threads_of(queues.threads, "batch") as threads:
            pending = {threads.submit(_attempt, batch, handler): batch for batch in queues.first()}
            try:
                while pending:
                    done, _ = wait(pending, _LOOK_SECONDS, FIRST_COMPLETED)
                    if not done:
                        # A document that takes minutes does not hold up the end of a cancelled run.
                        handler.run.check_cancelled()
                    for future in done:
                        batch = pending.pop(future)
                        pending |= {threads.submit(_attempt, each, handler): each for each in queues.after(batch)}
                        yield future.result()
            finally:
                if pending:
                    handler.run.cancelled.set()
                    for future in pending:
                        future.cancel()
                    wait(pending, _GRACE_SECONDS)


def _attempt(batch: Work, handler: BatchHandler[Work, Report]) -> Report:
    place = f"batch {batch.number}"
    try:
        return handler.run.retries.call(place, lambda: handler.process(batch), attempts=ATTEMPTS, worth=may_pass)
    except Exception as error:  # noqa: BLE001 - the edge of a batch: any error fails this batch or stops the run
        return handler.failed(batch, error)
