"""Workers of other processes and machines, which carry out the orders of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any, TypeVar

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner

from parquetry.embed.base import Gate
from parquetry.errors import MissingExtra
from parquetry.masked_output import masked_errors
from parquetry.settings.runner import RunSettings
from parquetry.settings.sections import Settings, override
from parquetry.tasks.engine.base import RemoteBatches
from parquetry.tasks.engine.gate import PrefectGate
from parquetry.tasks.engine.task_retries import batch_task

Report = TypeVar("Report")
Runner = TaskRunner[PrefectFuture[Any]]


class Workers:
    """The workers of a run.

    Args:
        settings: the workers, and where they are.
        concurrency: number of workers to start where none are running.
        runners: closed at the end of the batches.

    Raises:
        MissingExtra: the package of the task runner is not installed.
    """

    def __init__(self, settings: RunSettings, concurrency: int, runners: ExitStack) -> None:
        self._starts_here = settings.address is None
        self._concurrency = concurrency
        self._runner = runners.enter_context(_RUNNERS[settings.task_runner](settings.address, concurrency))

    def submit(self, number: int, order: str, remote: RemoteBatches[Any, Any]) -> PrefectFuture[str]:
        """Have the batch of an order processed, and return a future of its report."""
        parameters = {"number": number, "order": order, "settings": self._settings(remote.settings)}
        return self._runner.submit(remote_batch, {**parameters, "carry_out": remote.carry_out})

    def _settings(self, settings: Settings) -> Settings:
        """Return the settings for a worker; workers on this machine share its processors."""
        if not self._starts_here or settings.extraction.workers is not None:
            return settings
        share = max(1, (os.cpu_count() or 1) // self._concurrency)
        return override(settings, {"extraction": {"workers": share}})


@batch_task
def remote_batch(number: int, order: str, settings: Settings, carry_out: Callable[[str, Settings, Gate], str]) -> str:  # noqa: ARG001 - the name of the task run has the number
    """Process a batch in a worker."""
    with masked_errors():
        return carry_out(order, settings, _gate())


@cache
def _gate() -> Gate:
    return PrefectGate()


def _dask(address: str | None, workers: int) -> Runner:
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError as error:
        raise MissingExtra("dask", 'run.task_runner = "dask"') from error
    if address is not None:
        return DaskTaskRunner(address=address)
    local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    return DaskTaskRunner(cluster_kwargs=local)


def _ray(address: str | None, workers: int) -> Runner:
    try:
        import ray  # noqa: F401
        from prefect_ray import RayTaskRunner
    except ImportError as error:
        raise MissingExtra("ray", 'run.task_runner = "ray"') from error
    if address is not None:
        return RayTaskRunner(address=address)
    return RayTaskRunner(init_kwargs={"num_cpus": workers, "include_dashboard": False})


_RUNNERS: dict[str, Callable[[str | None, int], Runner]] = {"dask": _dask, "ray": _ray}
