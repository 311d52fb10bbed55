"""Run batches as Prefect task runs: retries with jitter, bounded concurrency, visible in the UI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from httpx import HTTPError
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext
from prefect.futures import PrefectConcurrentFuture
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task, exponential_backoff

from parquetry.masked_output import masked_errors
from parquetry.tasks.engine.base import ATTEMPTS, BatchHandler, Cancelled, HostQueues, Report, Work
from parquetry.tasks.engine.retries import may_pass

Result = TypeVar("Result")
POLL_SECONDS = 2.0
"""seconds between two queries of the API for a cancellation"""
FIRST_DELAY_SECONDS = 1.0
"""seconds before the first retry of a batch; doubled before each further one, and up to twice that with jitter"""


def retry_transient(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    """True if a retry of a failed batch may succeed."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, BaseException) and may_pass(error)


class PrefectEngine:
    """Run the steps of a flow run; use inside a flow."""

    def __init__(self) -> None:
        self._asked = monotonic()

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        get_run_logger().debug("step %s", name)
        _stop_if_cancelled()
        return function()

    def batches(self, batches: Sequence[Work], handler: BatchHandler[Work, Report]) -> Iterator[Report]:
        """Run one task for each batch; only their numbers and reports cross the task's edge."""
        if not batches:
            return
        task = _batch_task(batches, handler)
        queues = HostQueues(batches, handler.concurrency)
        runner: ThreadPoolTaskRunner[Report] = ThreadPoolTaskRunner(max_workers=queues.threads)
        finished: SimpleQueue[tuple[Work, PrefectConcurrentFuture[Report]]] = SimpleQueue()

        def submit(batch: Work) -> None:
            future = threads.submit(task, {"number": batch.number})
            future.add_done_callback(lambda _: finished.put((batch, future)))

        with runner as threads, ExitStack() as unfinished:
            # Leaving the runner waits for its threads; if it is left early, they stop before their next document.
            unfinished.callback(handler.run.cancelled.set)
            for batch in queues.first():
                submit(batch)
            for _ in batches:
                batch, future = self._next(finished)
                for each in queues.after(batch):
                    submit(each)
                try:
                    report = future.result()
                except Exception as error:  # noqa: BLE001 - the edge of a batch, after Prefect's retries
                    report = handler.failed(batch, error)
                yield report
                self._stop_if_cancelled_lately()
            unfinished.pop_all()

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

    @task(
        name="batch",
        task_run_name="batch-{number}",
        tags=["parquetry"],
        retries=ATTEMPTS - 1,
        retry_delay_seconds=exponential_backoff(backoff_factor=FIRST_DELAY_SECONDS),
        retry_jitter_factor=1,
        retry_condition_fn=retry_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
    )
    def batch(number: int) -> Report:
        run.check_cancelled()
        if number in begun:
            run.retries.count(f"batch {number}", "tried again by Prefect")
        begun.add(number)
        with masked_errors():
            return handler.process(by_number[number])

    return batch


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
