"""Waits of requests for their writes, in threads of their own so that a wait never holds up a search."""

from __future__ import annotations

import time
from typing import Any

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from parquetry.serving.jobs.model import Job
from parquetry.serving.service.follower import START_SECONDS, CorpusFollower
from parquetry.serving.service.resources import Resources

JOBS_PATH = "/api/v1/jobs"
"""path of the jobs in every service"""
_FIRST_SECONDS = 0.02
"""seconds between two looks for the first version"""
_POLLS = ((1.0, 0.01), (10.0, 0.05), (float("inf"), 0.25))
"""seconds waited so far -> seconds until the next look at a job"""
_THREADS = CapacityLimiter(8)
"""threads of writes; those of searches are others"""
_PAGES = CapacityLimiter(8)
"""threads that fetch pages and captions, each for up to two minutes"""
_DRAWINGS = CapacityLimiter(2)
"""threads that wait for pages and pictures to be drawn, each by a process of its own"""
_MODELS = CapacityLimiter(16)
"""threads that wait for answers of the language model"""


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Run a function that writes in one of the threads for writes."""
    return await run_sync(function, *arguments, limiter=_THREADS)


async def fetching(function: Any, *arguments: Any) -> Any:
    """Run a function that fetches from the web in one of the threads for that: a slow site holds up no write."""
    return await run_sync(function, *arguments, limiter=_PAGES)


async def drawing(function: Any, *arguments: Any) -> Any:
    """Run a function that draws in one of the threads for that, which bound the processes that draw at a time."""
    return await run_sync(function, *arguments, limiter=_DRAWINGS)


async def asking_model(function: Any, *arguments: Any) -> Any:
    """Run a function that asks the language model in one of the threads for that: a slow one holds up no search."""
    return await run_sync(function, *arguments, limiter=_MODELS)


async def first_version(follower: CorpusFollower) -> None:
    """Wait for the first version of the corpus, without a thread: other requests have none to wait for.

    Raises:
        NotReady: there is none in time.
    """
    deadline = time.monotonic() + START_SECONDS
    while follower.version is None:
        if time.monotonic() >= deadline:
            with follower.reader(wait=0):
                return
        await anyio.sleep(_FIRST_SECONDS)


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
