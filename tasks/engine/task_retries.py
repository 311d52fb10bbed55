"""The form of every batch as a Prefect task: its name and retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from parquetry.tasks.engine.base import ATTEMPTS
from parquetry.tasks.engine.retries import may_pass

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
FIRST_DELAY_SECONDS = 1.0
"""seconds before the first retry of a batch; doubled before each further one, and up to twice that with jitter"""


def retry_transient(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    """True if a retry of a failed batch may succeed."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, BaseException) and may_pass(error)


def batch_task(function: Callable[Parameters, Result]) -> Task[Parameters, Result]:
    """Return a function that processes the batch with a `number` as a task.

    It has no tags: before each task with tags, Prefect asks the server for a slot of their concurrency limits, whether
    there are any or not, and a server on SQLite that is busy answers so that the client asks again two seconds later.
    """
    as_task = task(
        name="batch",
        task_run_name="batch-{number}",
        retries=ATTEMPTS - 1,
        retry_delay_seconds=exponential_backoff(backoff_factor=FIRST_DELAY_SECONDS),
        retry_jitter_factor=1,
        retry_condition_fn=retry_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
    )
    return as_task(function)
