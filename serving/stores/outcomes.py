"""Outcome of the job behind an attachment, in OpenAI's terms. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parquetry.serving.files.model import AttachmentStatus, StoreFile
from parquetry.serving.jobs.model import Job

UNSUPPORTED, INVALID, SERVER = "unsupported_file", "invalid_file", "server_error"
_UNSUPPORTED = frozenset({"unsupported-type", "unsupported-compression", "unsupported-encoding"})
_SERVER = frozenset(
    {
        *("outage", "budget", "conflict", "index-not-written", "internal", "interrupted", "not-followed", "queue-full"),
        *("refused", "settings", "storage", "disk-full", "io-error", "stopped", "service-failed", "service-refused"),
        *("unreadable", "unreachable", "connection", "embedding-failed", "unexpected", "missing-bytes", "publish"),
    }
)
"""reasons that are no fault of the file"""
_INDEXED, _REMOVED = "indexed", "removed"


@dataclass(frozen=True, slots=True)
class AttachmentOutcome:
    """End of the last change of an attachment."""

    status: AttachmentStatus
    error: tuple[str, str] | None = None
    """code and message"""


def outcome_of(attachment: StoreFile, path: str, job: Job) -> AttachmentOutcome | None:
    """Return how a job ended for an attachment; None if its change has to be asked for again.

    Args:
        attachment: the attachment.
        path: path of its document.
        job: the job that carried out its last change, which is final.
    """
    if attachment.status == "cancelled":
        # What another job published until it was cancelled is still to be removed.
        return AttachmentOutcome("cancelled") if job.kind == "remove" and job.state == "completed" else None
    if attachment.status != "in_progress":
        return AttachmentOutcome("removed") if job.state == "completed" else None
    if job.state == "cancelled":
        return AttachmentOutcome("cancelled")
    for document in (job.result or {}).get("documents", ()):
        if document["path"] == path:
            return _of_document(document)
    if job.state == "completed":
        # A job that does not name the document did nothing about it.
        return AttachmentOutcome("failed", (SERVER, "the file was not indexed; attach it again"))
    return AttachmentOutcome("failed", failure(job.reason or job.state, job.detail or f"the job was {job.state}"))


def _of_document(document: Mapping[str, Any]) -> AttachmentOutcome:
    error = document["error"]
    if error is not None:
        return AttachmentOutcome("failed", failure(error["reason"], error["detail"]))
    if document["status"] == _REMOVED:
        return AttachmentOutcome("cancelled")
    if document["status"] != _INDEXED or not document["chunks"]:
        return AttachmentOutcome("failed", (INVALID, "the file has no text to index"))
    return AttachmentOutcome("completed")


def failure(reason: str, detail: str) -> tuple[str, str]:
    """Return code and message of a failure."""
    if reason in _UNSUPPORTED:
        return UNSUPPORTED, detail
    return (SERVER if reason in _SERVER else INVALID), detail


def failure_of_document(status: str, error: str | None) -> tuple[str, str] | None:
    """Return code and message for the row of a document; None if it is indexed.

    Args:
        status: status of the document.
        error: `stage/reason: detail`.
    """
    if status == _INDEXED:
        return None
    place, _, detail = (error or "unknown/unknown: it was not indexed").partition(": ")
    return failure(place.rpartition("/")[2], detail)
