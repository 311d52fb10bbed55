"""Withdrawal of what a cancelled job handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.set_aside import UNDO_SECONDS, SetAside
from parquetry.serving.jobs.store import MOST_QUEUED, JobStore
from parquetry.serving.jobs.table import now
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import Damaged

if TYPE_CHECKING:
    from parquetry.sources.uploads.store import UploadStore


def handed_in(upload: Upload, *, changed: bool = False, replaces: bool = False) -> dict[str, Any]:
    """Return an upload as the payload of a job names it.

    Args:
        upload: the upload as it is kept.
        changed: True if it can be withdrawn; False for one that was there already.
        replaces: True if another one was set aside for it.
    """
    named: dict[str, Any] = {"namespace": upload.namespace, "path": upload.path}
    if changed:
        named |= {"etag": upload.etag, "replaces": replaces}
    return named


def change_of(upload: Upload) -> str:
    """Return the key under which the upload that another one replaced is set aside."""
    return _change(upload.namespace, upload.path, upload.etag)


def changes_of(job: Job) -> dict[tuple[str, str], str | None]:
    """Return namespace and path of what a job hands in, with the key of what it replaced; None if it cannot be told."""
    named = {}
    for each in job.payload.get("uploads", ()):
        place = (each["namespace"], each["path"])
        named[place] = _change(*place, each["etag"]) if each.get("replaces") else None
    return named


def changes_in_use(store: JobStore) -> set[str]:
    """Return the keys of changes that may be undone: those of jobs in work, and of removals that were done lately."""
    since = now() - UNDO_SECONDS * 1_000_000
    keys = {removal.id for removal in store.removals({}, since, MOST_QUEUED)}
    for state in ("queued", "running"):
        for job in store.list(state=state, limit=MOST_QUEUED):
            keys |= {job.id, str(job.payload.get("removal")), *filter(None, changes_of(job).values())}
    return keys


def _change(namespace: str, path: str, etag: str) -> str:
    return f"{namespace}/{path}/{etag}"


def can_be_withdrawn(job: Job) -> bool:
    """Return True if what a job hands in can be taken back: it says what it changed."""
    return job.kind == "ingest" and any("etag" in each for each in job.payload["uploads"])


def withdraw(store: JobStore, uploads: UploadStore, aside: SetAside, job: Job) -> list[tuple[str, str]]:
    """Take back what a job handed in, unless it was handed in again since.

    A new upload is deleted; one that replaced another gives way to it. What came after it does not bring it back.

    Args:
        store: all jobs.
        uploads: all uploads.
        aside: the uploads that were replaced.
        job: a job that hands in.

    Returns:
        Namespace and path of what changed.
    """
    changed = []
    for each in job.payload.get("uploads", ()):
        place = (each["namespace"], each["path"])
        try:
            kept = uploads.get(*place)
        except Damaged:
            continue
        if "etag" not in each:
            continue
        if kept is None or kept.etag != each["etag"]:
            aside.pass_over(*place, each["etag"], _change(*place, each["etag"]))
            continue
        if _is_left_to_another(store, job, each):
            continue
        before = list(aside.find(change_of(kept))) if each["replaces"] else []
        for upload, content in before:
            uploads.put_back(upload, content)
        if not each["replaces"] or aside.is_emptied(change_of(kept), *place):
            uploads.delete(*place)
        elif not before:
            continue
        aside.drop(change_of(kept))
        changed.append(place)
    return changed


def _is_left_to_another(store: JobStore, job: Job, named: Mapping[str, Any]) -> bool:
    """Return True if a later job handed in the same, which changed nothing; cancelling that one takes it back."""
    same = {"namespace": named["namespace"], "path": named["path"]}
    for other in reversed(store.list(kind="ingest", after=job.number, limit=MOST_QUEUED)):
        uploads = other.payload["uploads"]
        if other.state == "cancelled" or same not in uploads:
            continue
        passed_on = {**other.payload, "uploads": [named if each == same else each for each in uploads]}
        if other.is_final or store.replace_payload(other.id, passed_on):
            return True
    return False
