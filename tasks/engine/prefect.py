"""Run batches as Prefect task runs: retries with jitter, bounded concurrency, visible in the UI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from httpx import HTTPError
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient
from prefect.context import FlowRunContext, TagsContext
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task

from parquetry.embed.base import Gate
from parquetry.masked_output import masked_errors
from parquetry.settings.runner import RunSettings
from parquetry.tasks.engine.base import BatchHandler, Cancelled, HostQueues, RemoteBatches, Report, Work
from parquetry.tasks.engine.gate import PrefectGate
from parquetry.tasks.engine.remote import Workers
from parquetry.tasks.engine.task_retries import batch_task

Result = TypeVar("Result")
POLL_SECONDS = 2.0
"""seconds between two queries of the API for a cancellation"""


class PrefectEngine:
    """Run the steps of a flow run; use inside a flow.

    Args:
        settings: the processes that batches run in.
    """

    def __init__(self, settings: RunSettings | None = None) -> None:
        self._settings = settings or RunSettings()
        self._asked = monotonic()
        self.gate: Gate = PrefectGate()

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        get_run_logger().debug("step %s", name)
        _stop_if_cancelled()
        return function()

    def batches(self, batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Iterator[Report]:
        """Run one task for each batch; only their numbers, orders and reports cross the task's edge."""
        if not batches:
            return
        queues = HostQueues(batches, handler.concurrency)
        finished: SimpleQueue[tuple[Work, Callable[[], Report]]] = SimpleQueue()
        with ExitStack() as runners, ExitStack() as unfinished:
            submit = self._submitter(batches, handler, queues.threads, runners)

            def start(batch: Work) -> None:
                # The tags of the flow run would be those of its tasks, too; see `batch_task`.
                with TagsContext(current_tags=set()):
                    future, result = submit(batch)
                future.add_done_callback(lambda _: finished.put((batch, result)))

            # Leaving the runner waits for its threads; if it is left early, they stop before their next document.
            unfinished.callback(handler.run.cancelled.set)
            for batch in queues.first():
                start(batch)
            for _ in batches:
                batch, result = self._next(finished)
                try:
                    report = result()
                except Exception as error:  # noqa: BLE001 - the edge of a batch, after Prefect's retries
                    report = handler.failed(batch, error)
                # Only now, because the report gives back what the batch did not spend.
                for each in queues.after(batch):
                    start(each)
                yield report
                self._stop_if_cancelled_lately()
            unfinished.pop_all()

    def _submitter(
        self, batches: Sequence[Work], handler: BatchHandler[Work, Report], threads: int, runners: ExitStack
    ) -> Callable[[Work], tuple[PrefectFuture[Any], Callable[[], Report]]]:
        """Open the task runners, and return what submits a batch to one, as a future and a function for its report."""
        task = _batch_task(batches, handler)
        local: ThreadPoolTaskRunner[Report] = runners.enter_context(ThreadPoolTaskRunner(max_workers=threads))
        remote = handler.remote
        workers = Workers(self._settings, handler, remote, runners) if remote else None

        def submit(batch: Work) -> tuple[PrefectFuture[Any], Callable[[], Report]]:
            order = remote.order(batch) if remote and workers else None
            if remote is None or workers is None or order is None:
                future = local.submit(task, {"number": batch.number})
                return future, future.result
            answer = workers.submit(batch.number, order)
            return answer, lambda: _received(batch, answer, workers, remote)

        return submit

    def _next(self, finished: SimpleQueue[Result]) -> Result:
        """Return the next finished batch; raise Cancelled soon after the flow run was cancelled."""
        while True:
            try:
                return finished.get(timeout=POLL_SECONDS)
            except Empty:
                self._stop_if_cancelled_lately()

    def _stop_if_cancelled_lately(self) -> None:
        if monotonic() - self._asked >= POLL_SECONDS:
            _stop_if_cancelled()
            self._asked = monotonic()


def _batch_task(batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Task[[int], Report]:
    by_number = {batch.number: batch for batch in batches}
    run = handler.run
    begun: set[int] = set()

    @batch_task
    def batch(number: int) -> Report:
        run.check_cancelled()
        if number in begun:
            run.retries.count(f"batch {number}", "tried again by Prefect")
        begun.add(number)
        with masked_errors():
            return handler.process(by_number[number])

    return batch


def _received(batch: Work, answer: PrefectFuture[str], workers: Workers, remote: RemoteBatches[Work, Report]) -> Report:
    with ExitStack() as unanswered:
        unanswered.callback(remote.lost, batch)
        content = workers.answer(answer)
        unanswered.pop_all()
    return remote.receive(content)


def _stop_if_cancelled() -> None:
    """Query the API for a cancellation of the flow run: a run in this process receives no notice of it."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None or not isinstance(context.client, SyncPrefectClient):
        return
    try:
        state = context.client.read_flow_run(context.flow_run.id).state
    except HTTPError as error:
        # A failed query does not stop the work: it is repeated later.
        get_run_logger().debug("whether the run was cancelled is not known: %s", error)
        return
    if state is not None and (state.is_cancelling() or state.is_cancelled()):
        raise Cancelled(f"flow run {context.flow_run.name} was cancelled; nothing was published")
