"""How batches are run: in this process, or as Prefect tasks. The composition of a run knows only the Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from knowledge.batches import Batch
from knowledge.errors import classify
from tasks.batch import BatchReport, failed_batch, process_batch
from tasks.run import Run

Result = TypeVar("Result")
ATTEMPTS = 3
"""tries of a batch whose failure may go away by itself"""
LONGEST_WAIT_SECONDS = 30


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


def may_pass(error: BaseException) -> bool:
    """Whether a batch is worth another try."""
    return isinstance(error, Exception) and classify(error).fate == "retry"


class DirectEngine:
    """Runs everything in threads of this process, without any service."""

    def step(self, name: str, function: Callable[[], Result]) -> Result:  # noqa: ARG002 - the name is for engines that log
        return function()

    def batches(self, batches: Sequence[Batch], run: Run) -> Iterator[BatchReport]:
        with ThreadPoolExecutor(run.settings.refresh.workers, thread_name_prefix="batch") as threads:
            pending: set[Future[BatchReport]] = {threads.submit(_attempt, batch, run) for batch in batches}
            try:
                while pending:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                if pending:
                    run.cancelled.set()
                    for future in pending:
                        future.cancel()


def _attempt(batch: Batch, run: Run) -> BatchReport:
    retrying = Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_random_exponential(multiplier=1, max=LONGEST_WAIT_SECONDS),
        sleep=run.pause,
        reraise=True,
    )
    try:
        return retrying(process_batch, batch, run)
    except Exception as error:  # noqa: BLE001 - the batch shell: whatever happened fails this batch or stops the run
        return failed_batch(batch, error, run)
