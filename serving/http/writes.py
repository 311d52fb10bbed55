"""Answers to writes: the result when the job is done, its address when that takes long, its reason when it failed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Query
from fastapi.responses import JSONResponse

from parquetry.serving.http.gateway_models import Accepted
from parquetry.serving.http.problems import Problem
from parquetry.serving.jobs.model import Job
from parquetry.serving.service.awaiting import JOBS_PATH, after_wait
from parquetry.serving.service.resources import Resources

_STATUSES = {
    "outage": 502,
    "service-failed": 502,
    "interrupted": 503,
    "cancelled": 409,
    "conflict": 503,
    "stopped": 503,
    "storage": 503,
    "disk-full": 503,
    "index-not-written": 503,
    "not-followed": 503,
    "io-error": 503,
    "internal": 500,
}
"""reasons of failed jobs that are no fault of the request -> status"""

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": Accepted, "description": "The write goes on; `Location` is the address of its job."}
}
"""the other answer of routes that write"""


async def _at_once(
    prefer: Annotated[
        str | None, Header(description="`respond-async`: do not wait until the write is done.", max_length=255)
    ] = None,
    wait: Annotated[bool, Query(description="false: do not wait until the write is done.")] = True,
) -> bool:
    preferences = (each.strip().lower() for each in (prefer or "").split(","))
    return not wait or "respond-async" in preferences


AtOnce = Annotated[bool, Depends(_at_once)]
"""True if the caller does not want to wait for a write"""


async def outcome(resources: Resources, job: Job, *, at_once: bool) -> Job | JSONResponse:
    """Return a job that is done, or the answer 202 with its address.

    Args:
        resources: parts of the service.
        job: the job, as it was submitted.
        at_once: do not wait.

    Raises:
        Problem: the job failed.
    """
    if at_once:
        return accepted(job)
    job = await after_wait(resources, job)
    if not job.is_final:
        return accepted(job)
    if job.state != "completed":
        raise failure_of(job)
    return job


def accepted(job: Job) -> JSONResponse:
    """Return the answer 202: the write goes on."""
    place = f"{JOBS_PATH}/{job.id}"
    return JSONResponse({"job_id": job.id, "state": job.state}, 202, {"Location": place})


def failure_of(job: Job) -> Problem:
    """Return the answer for a job that failed or was cancelled."""
    reason = job.reason or job.state
    detail = job.detail or f"the job was {job.state}"
    more: dict[str, Any] = {"job_id": job.id}
    documents = (job.result or {}).get("documents")
    if documents is not None:
        more["documents"] = documents
    return Problem(_STATUSES.get(reason, 422), reason, detail, more=more)
