"""Workers of other processes and machines, which carry out the orders of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from parquetry.embed.base import Gate
from parquetry.errors import MissingExtra, WorkerLost, first_line
from parquetry.masked_output import masked_errors
from parquetry.settings.runner import RunSettings
from parquetry.settings.sections import Settings, override
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.orders import Orders
from parquetry.tasks.engine.addresses import check_there
from parquetry.tasks.engine.base import BatchHandler, RemoteBatches
from parquetry.tasks.engine.gate import PrefectGate
from parquetry.tasks.engine.ray import ray_workers
from parquetry.tasks.engine.task_retries import batch_task
from parquetry.tasks.engine.work_pool import pool_batch

Report = TypeVar("Report")
Runner = TaskRunner[Any]
_ENGINES = frozenset({"distributed", "dask", "ray"})
"""packages whose own errors tell that a worker was lost"""
_SOCKETS = frozenset({"tcp", "tls"})
"""schemes of addresses of Dask that name a host and a port"""


class Workers:
    """The workers of a run.

    Args:
        settings: the workers, and where they are.
        handler: handler of the batches; its concurrency is the number of workers to start where none are running.
        remote: its functions for batches of other processes.
        runners: closed at the end of the batches.

    Raises:
        MissingExtra: the package of the task runner is not installed.
    """

    def __init__(
        self,
        settings: RunSettings,
        handler: BatchHandler[Any, Any],
        remote: RemoteBatches[Any, Any],
        runners: ExitStack,
    ) -> None:
        self._run = settings
        self._handler = handler
        self._remote = remote
        self._settings = self._shared(remote.settings, handler.concurrency)
        Orders(layout_of(remote.settings.corpus.root)).delete_abandoned()
        self._runner = runners.enter_context(_RUNNERS[settings.task_runner](settings.address, handler.concurrency))

    def submit(self, number: int, order: str) -> PrefectFuture[str]:
        """Have the batch of an order processed, and return a future of its report."""
        future: PrefectFuture[str]
        if self._run.task_runner == "work-pool":
            place = {"root": self._remote.settings.corpus.root, "deployment": self._run.deployment}
            end = {"check_cancelled": self._handler.run.check_cancelled}
            future = self._runner.submit(pool_batch, {"number": number, "order": order, **place, **end})
        else:
            given = {"settings": self._settings, "carry_out": self._remote.carry_out}
            future = self._runner.submit(remote_batch, {"number": number, "order": order, **given})
        return future

    def answer(self, future: PrefectFuture[str]) -> str:
        """Return the report of a batch.

        Raises:
            WorkerLost: its workers were lost as often as Dask or Ray tried.
            ParquetryError: as for the batch.
        """
        try:
            return future.result()
        except Exception as error:
            if type(error).__module__.partition(".")[0] in _ENGINES:
                raise WorkerLost("worker-lost", f"{type(error).__name__}: {first_line(error)}") from error
            raise

    def _shared(self, settings: Settings, workers: int) -> Settings:
        """Return the settings for a worker; workers that are started on this machine share its processors."""
        if self._run.address is not None or settings.extraction.workers is not None:
            return settings
        return override(settings, {"extraction": {"workers": max(1, (os.cpu_count() or 1) // workers)}})


@batch_task
def remote_batch(number: int, order: str, settings: Settings, carry_out: Callable[[str, Settings, Gate], str]) -> str:  # noqa: ARG001 - the name of the task run has the number
    """Process a batch in a worker."""
    with masked_errors():
        return carry_out(order, settings, PrefectGate())


def _dask(address: str | None, workers: int) -> Runner:
    if address is not None and address.partition("://")[0] in _SOCKETS | {address}:
        check_there(address, "Dask")
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise MissingExtra("dask", 'run.task_runner = "dask"') from error
    if address is not None:
        return DaskTaskRunner(address=address)
    local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    return DaskTaskRunner(cluster_kwargs={**local, "config": _without_deadlocks()})


def _without_deadlocks() -> dict[str, bool]:
    """Return Dask's configuration of workers, without what can stop them for ever.

    Their profiler looks at the frames of their threads a hundred times a second, which can deadlock a process of Python
    3.11: https://github.com/python/cpython/issues/106883.
    """
    return {} if sys.version_info >= (3, 12) else {"distributed.worker.profile.enabled": False}


def _threads(_: str | None, workers: int) -> Runner:
    """Return threads that wait for flow runs of a work pool."""
    return ThreadPoolTaskRunner(max_workers=workers)


_RUNNERS: dict[str, Callable[[str | None, int], AbstractContextManager[Runner]]] = {
    "dask": _dask,
    "ray": ray_workers,
    "work-pool": _threads,
}
