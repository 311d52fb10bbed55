"""Documents on their way into a corpus: the state of each, and what to do if it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from parquetry.model import Visibility
from parquetry.serving.access.principals import Principal
from parquetry.serving.jobs.model import Job
from parquetry.serving.web.documents import ShownFailure, failure

Step = Literal["queued", "running", "searchable", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Addition:
    """A document that was handed in."""

    name: str
    step: Step
    document_id: str
    """empty before it is published, and if it was not"""
    chunks: int
    failure: ShownFailure | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audience:
    """The audience of a new document."""

    visibility: Visibility
    label: str


def additions_of(job: Job) -> list[Addition]:
    """Return the documents of a job, in the order in which they were handed in."""
    told: list[Mapping[str, Any]] = list((job.result or {}).get("documents", ()))
    if told:
        return [_told(each) for each in told]
    names = [str(each["path"]).rpartition("/")[2] for each in job.payload.get("uploads", ())]
    if job.state == "failed":
        code = job.reason or "failed"
        found = failure("", code, job.detail or "", uploaded=True)
        return [Addition(name, "failed", "", 0, found, ()) for name in names]
    if job.state == "cancelled":
        return [Addition(name, "cancelled", "", 0, None, ()) for name in names]
    return [Addition(name, "running" if job.state == "running" else "queued", "", 0, None, ()) for name in names]


def _told(document: Mapping[str, Any]) -> Addition:
    error = document["error"]
    found = None
    if error is not None:
        found = failure(error["stage"], error["reason"], error["detail"], uploaded=True)
    searchable = found is None and document["status"] == "indexed"
    return Addition(
        document["filename"],
        "searchable" if searchable else "failed",
        # A failed document has a page, too, which keeps the reason.
        document["document_id"] if document["status"] in ("indexed", "failed", "skipped") else "",
        document["chunks"],
        found,
        tuple(document["warnings"]),
    )


def state_of(job: Job) -> dict[str, Any]:
    """Return what became of the documents of a job, for scripts."""
    documents = additions_of(job)
    step = {"completed": "done", "failed": "done"}.get(job.state, job.state)
    return {"job": job.id, "step": step, "documents": [asdict(each) for each in documents]}


def audiences(principal: Principal) -> list[Audience]:
    """Return the audiences that a caller may choose for a new document; the first is the default."""
    found: list[Audience] = []
    if principal.user_id:
        found.append(Audience("individual", "Only me"))
    if principal.org_id:
        found.append(Audience("organization", f"Everyone in {principal.org_id}"))
    if principal.may("admin") or not (principal.user_id or principal.org_id):
        found.append(Audience("public", "Everyone"))
    return found
