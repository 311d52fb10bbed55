"""Runs batches as Prefect task runs: retries with jitter, a bounded number at a time, visible in the UI."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast
from uuid import UUID

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import FlowRunContext
from prefect.futures import as_completed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task, exponential_backoff

from knowledge.batches import Batch
from tasks.batch import BatchReport, failed_batch, process_batch
from tasks.engine import ATTEMPTS, may_pass
from tasks.run import Cancelled, Run

Result = TypeVar("Result")


def retry_transient(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    """Whether a failed batch may pass when it is tried again."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, BaseException) and may_pass(error)


class PrefectEngine:
    """Runs the steps of a flow run; use inside a flow."""

    def step(self, name: str, function: Callable[[], Result]) -> Result:
        get_run_logger().debug("step %s", name)
        return function()

    def batches(self, batches: Sequence[Batch], run: Run) -> Iterator[BatchReport]:
        """Map one task over the batches; only their numbers and reports cross the task's edge."""
        if not batches:
            return
        by_number = {batch.number: batch for batch in batches}

        @task(
            name="batch",
            task_run_name="batch-{number}",
            tags=["parquetry"],
            retries=ATTEMPTS - 1,
            retry_delay_seconds=exponential_backoff(backoff_factor=1),
            retry_jitter_factor=1,
            retry_condition_fn=retry_transient,
            cache_policy=NO_CACHE,
            persist_result=False,
        )
        def batch(number: int) -> BatchReport:
            run.check_cancelled()
            return process_batch(by_number[number], run)

        runner: ThreadPoolTaskRunner[BatchReport] = ThreadPoolTaskRunner(max_workers=run.settings.refresh.workers)
        with runner as threads:
            futures = threads.map(batch, {"number": list(by_number)})
            numbers = {future.task_run_id: number for future, number in zip(futures, by_number, strict=True)}
            try:
                for future in as_completed(list(futures)):
                    number = numbers[future.task_run_id]
                    try:
                        report = cast(BatchReport, future.result())
                    except Exception as error:  # noqa: BLE001 - the batch shell, after Prefect's retries
                        report = failed_batch(by_number[number], error, run)
                    yield report
                    _stop_if_cancelled(run)
            except BaseException:
                run.cancelled.set()
                raise


def _stop_if_cancelled(run: Run) -> None:
    """Ask the API whether somebody cancelled the flow run: threads do not learn of it by themselves."""
    context = FlowRunContext.get()
    flow_run_id: UUID | None = context.flow_run.id if context and context.flow_run else None
    if flow_run_id is None:
        return
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(flow_run_id).state
    if state is not None and (state.is_cancelling() or state.is_cancelled()):
        run.cancelled.set()
        raise Cancelled(f"run {run.stamp.run_id} was cancelled; nothing was published")
