"""Cancellation of jobs on behalf of whom they were accepted."""

from __future__ import annotations

from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.withdrawing import withdraw
from parquetry.serving.service.resources import Resources


def cancel(resources: Resources, job: Job) -> Job:
    """Cancel a job: at once if it waits; else it stops, or what it handed in is taken back when it is done."""
    ended = resources.jobs.cancel(job.id)
    if ended.state == "cancelled" and ended.kind == "ingest":
        withdraw(resources.uploads, SetAside(resources.state), ended)
    return ended
