"""Waits of requests for their writes, in threads of their own so that a wait never holds up a search."""

from __future__ import annotations

import time
from typing import Any

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from parquetry.serving.jobs.model import Job
from parquetry.serving.service.resources import Resources

JOBS_PATH = "/api/v1/jobs"
"""path of the jobs in every service"""
_POLLS = ((1.0, 0.01), (10.0, 0.05), (float("inf"), 0.25))
"""seconds waited so far -> seconds until the next look at a job"""
_THREADS = CapacityLimiter(8)
"""threads of writes; those of searches are others"""


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Run a function that writes in one of the threads for writes."""
    return await run_sync(function, *arguments, limiter=_THREADS)


async def after_wait(resources: Resources, job: Job) -> Job:
    """Return a job when it is done, or as it is after `serve.wait_seconds`.

    Args:
        resources: parts of the service.
        job: the job, as it was submitted.
    """
    started = time.monotonic()
    while not job.is_final:
        waited = time.monotonic() - started
        if waited >= resources.settings.serve.wait_seconds:
            return job
        await anyio.sleep(next(pause for until, pause in _POLLS if waited < until))
        job = await in_thread(resources.jobs.get, job.id) or job
    return job
