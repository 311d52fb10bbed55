"""How batches are run: in this process, or as Prefect tasks. The composition of a run knows only the Protocol."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Protocol, TypeVar

from knowledge.batches import Batch
from tasks.batch import BatchReport, failed_batch, process_batch
from tasks.retries import may_pass
from tasks.run import Run

Result = TypeVar("Result")
ATTEMPTS = 3
"""tries of a batch whose failure may go away by itself"""


class Engine(Protocol):
    """Runs the parts of a run."""

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        """Run one part by itself, under a name for logs."""
        ...

    def batches(self, batches: Sequence[Batch], run: Run) -> Iterator[BatchReport]:
        """Process batches, several at a time, and yield each report when it is there.

        A batch that goes on failing yields a report in which all its documents failed; only what concerns the whole
        run is raised.
        """
        ...


class Lanes:
    """Batches by the service that they are read from: a slow one holds up only its own.

    Args:
        batches: all of a run.
        abreast: of one service at a time.
    """

    def __init__(self, batches: Iterable[Batch], abreast: int) -> None:
        self._waiting: dict[str, deque[Batch]] = defaultdict(deque)
        for batch in batches:
            self._waiting[batch.host].append(batch)
        self._abreast = abreast

    @property
    def threads(self) -> int:
        """How many batches may be in work at a time."""
        return max(1, self._abreast * len(self._waiting))

    def first(self) -> list[Batch]:
        """The batches to begin with."""
        lanes = self._waiting.values()
        return [lane.popleft() for lane in lanes for _ in range(min(self._abreast, len(lane)))]

    def after(self, done: Batch) -> list[Batch]:
        """The batch to begin when another is done, if one is left."""
        lane = self._waiting[done.host]
        return [lane.popleft()] if lane else []


class DirectEngine:
    """Runs everything in threads of this process, without any service."""

    def step(self, name: str, function: Callable[[], Result]) -> Result:  # noqa: ARG002 - the name is for engines that log
        return function()

    def batches(self, batches: Sequence[Batch], run: Run) -> Iterator[BatchReport]:
        lanes = Lanes(batches, run.settings.refresh.workers)
        with ThreadPoolExecutor(lanes.threads, thread_name_prefix="batch") as threads:
            pending = {threads.submit(_attempt, batch, run): batch for batch in lanes.first()}
            try:
                while pending:
                    done, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        batch = pending.pop(future)
                        pending |= {threads.submit(_attempt, each, run): each for each in lanes.after(batch)}
                        yield future.result()
            finally:
                if pending:
                    run.cancelled.set()
                    for future in pending:
                        future.cancel()


def _attempt(batch: Batch, run: Run) -> BatchReport:
    place = f"batch {batch.number}"
    try:
        return run.retries.call(place, lambda: process_batch(batch, run), attempts=ATTEMPTS, worth=may_pass)
    except Exception as error:  # noqa: BLE001 - the batch shell: whatever happened fails this batch or stops the run
        return failed_batch(batch, error, run)
