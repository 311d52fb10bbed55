"""Cancellation of jobs on behalf of whom they were accepted."""

from __future__ import annotations

from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.published_rows import key_of, published_rows
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.withdrawing import can_be_withdrawn, withdraw
from parquetry.serving.service.resources import Resources


def cancel(resources: Resources, job: Job) -> Job:
    """Cancel a job: at once if it waits; else it stops, or what it handed in is taken back when it is done."""
    ended = resources.jobs.cancel(job.id, at_once=not _is_published(resources, job))
    if ended.state == "cancelled" and ended.kind == "ingest":
        withdraw(resources.jobs, resources.uploads, SetAside(resources.state), ended)
    return ended


def _is_published(resources: Resources, job: Job) -> bool:
    """Return True if another run published what a job hands in: one over all uploads, or one over the same document."""
    if not can_be_withdrawn(job):
        return False
    etags = {key_of((each["namespace"], each["path"])): each.get("etag") for each in job.payload["uploads"]}
    rows = published_rows(resources.settings.corpus.root, etags)
    return any(row.etag == etags[key] for key, row in rows.items())
