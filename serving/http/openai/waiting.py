"""Waits for the jobs behind a request of OpenAI's dialect: its answer is the object as it is then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from parquetry.serving.http.writes import failure_of
from parquetry.serving.jobs.model import Job
from parquetry.serving.service.awaiting import after_wait, in_thread
from parquetry.serving.service.resources import Resources


async def after_jobs(parts: Resources, jobs: Iterable[str | None], *, at_once: bool) -> list[Job]:
    """Return jobs as soon as all are final, or as they are when the caller has waited long enough.

    Args:
        parts: parts of the service.
        jobs: their ids; jobs that are not known any more are left out.
        at_once: do not wait.
    """
    found = [await in_thread(parts.jobs.get, job) for job in dict.fromkeys(jobs) if job is not None]
    known = [job for job in found if job is not None]
    return known if at_once else list(await asyncio.gather(*(after_wait(parts, job) for job in known)))


async def removed(parts: Resources, jobs: Iterable[str | None], *, at_once: bool) -> bool:
    """Wait for removals; return True if they are done, False if they go on.

    Raises:
        Problem: one of them failed.
    """
    ended = await after_jobs(parts, jobs, at_once=at_once)
    for job in ended:
        if job.is_final and job.state != "completed":
            raise failure_of(job)
    return all(job.is_final for job in ended)
