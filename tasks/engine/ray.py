"""Workers of Ray: processes of this machine for the time of a run, or those of a cluster that is running."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect.task_runners import TaskRunner

from parquetry.errors import MissingExtra
from parquetry.tasks.engine.addresses import check_there

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0"}
"""environment variables that keep Ray from sending reports on its use and from serving metrics of its processes"""
_OWN = {
    "AUTOSCALER_METRIC_PORT": "-1",
    "DASHBOARD_METRIC_PORT": "-1",
    "RAY_AUTH_MODE": "token",
    "RAY_worker_niceness": "0",
}
"""those of a Ray of our own: a port that cannot be opened serves nothing, requests need a token, and workers get their
share of a busy machine, where Ray's niceness of 15 kept them waiting for many minutes"""
_STORE_BYTES = 80 * 2**20
"""shared memory for orders and reports, little more than the least that Ray accepts"""
_PORT = 6379
"""Ray's default port"""
_SHORT = Path("/tmp")  # noqa: S108 - mkdtemp makes a folder of its own below
"""folder for Ray's sockets, whose paths may have a hundred characters"""


@contextmanager
def ray_workers(address: str | None, workers: int) -> Iterator[TaskRunner[Any]]:
    """Connect to a Ray, or start one on this machine until the end of the block.

    Args:
        address: address of a cluster that is running; None to start processes here.
        workers: processes to start.

    Raises:
        MissingExtra: Ray is not installed.
        SettingsError: no cluster answers at the address.
    """
    if address is not None:
        check_there(address, "Ray", _PORT)
    # Read while Ray is imported, so they stay set: the next run of this process needs the same.
    token = {} if "RAY_AUTH_TOKEN_PATH" in os.environ else {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
    wanted = _QUIET if address is not None else {**_QUIET, **_OWN, **token}
    os.environ.update({name: value for name, value in wanted.items() if name not in os.environ})
    try:
        import ray  # noqa: F401 - prefect-ray imports it when it is used
        from prefect_ray.task_runners import RayTaskRunner
    except ImportError as error:
        raise MissingExtra("ray", 'run.task_runner = "ray"') from error
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        with _opened(RayTaskRunner(address=address, init_kwargs=quiet)) as runner:
            yield runner
        return
    own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    with _folder() as folder:
        init = {**quiet, **own, "_temp_dir": folder}
        # "local" starts a new one, whatever RAY_ADDRESS and earlier clusters of this machine are.
        runner = RayTaskRunner(address="local", init_kwargs=init)
        with _opened(runner):
            yield runner


@contextmanager
def _opened(runner: TaskRunner[Any]) -> Iterator[TaskRunner[Any]]:
    """Open a task runner, and keep this process's own handling of SIGTERM, which Ray replaces."""
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        runner.__enter__()
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, handler)
    try:
        yield runner
    finally:
        runner.__exit__(None, None, None)


@contextmanager
def _folder() -> Iterator[str]:
    """Make a folder for Ray's logs and sockets; Ray itself would leave one behind after each run."""
    folder = tempfile.mkdtemp(prefix="ray-", dir=_SHORT if _SHORT.is_dir() else None)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
