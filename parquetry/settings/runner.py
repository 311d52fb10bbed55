"""Settings of the processes and machines that work on a run's batches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parquetry.settings.base import Section

TaskRunnerName = Literal["threads", "dask", "ray", "work-pool"]


class RunSettings(Section):
    """Processes that work on the batches of a refresh that runs as a Prefect flow."""

    task_runner: TaskRunnerName = Field(
        "threads",
        description="`threads` of the run's own process; workers of `dask` or `ray`; or flow runs in a "
        "Prefect `work-pool`. `refresh.workers` is the number of batches in work at a time.",
    )
    address: str | None = Field(
        None,
        min_length=1,
        examples=["tls://scheduler:8786"],
        description="Of Dask's scheduler, for `dask`, or of a cluster of Ray, for `ray`; default: workers on this "
        "machine, for the time of the run.",
    )
    deployment: str = Field(
        "batches/parquetry",
        pattern=r"^[^/]+/[^/]+$",
        description="Deployment of the flow `batches` in the work pool, for `work-pool`.",
    )
