"""Small writes: documents handed in and removed, published together in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from parquetry.errors import BrokenDocument, SettingsError
from parquetry.model import Access, DocumentRow
from parquetry.planning.report import RunReport
from parquetry.planning.rows import new_stamp
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.indexing import update_index
from parquetry.serving.jobs.kept_uploads import refresh_uploads, upload_at
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.published_rows import Key, Place, key_of, published_rows, published_uploads
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.store import MOST_QUEUED
from parquetry.serving.jobs.taking_back import end_of, take_back
from parquetry.serving.jobs.withdrawing import can_be_withdrawn, changes_of
from parquetry.serving.jobs.write_outcomes import JobOutcome, PublishedWrites
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.rewrite import remove_documents

RUNS_AGAIN = 3
"""runs after the first, if others publish the same documents at the same time"""


@dataclass
class _Batch:
    """Some jobs, and what they ask for."""

    jobs: Sequence[Job]
    handed_in: dict[str, list[Place]] = field(default_factory=dict)
    """job -> uploads to publish"""
    removed: dict[str, list[Key]] = field(default_factory=dict)
    """job -> documents to remove"""
    chunks: dict[Key, int] = field(default_factory=dict)
    """chunks of the documents to remove, as they were"""
    places: set[Place] = field(default_factory=set)
    """uploads to look at"""
    elsewhere: set[Key] = field(default_factory=set)
    """documents to remove that other sources hold"""
    before: int = 0
    """version before the first attempt"""


def publish_writes(context: JobContext, jobs: Sequence[Job], engine: StoppableEngine) -> dict[str, JobOutcome]:
    """Carry out jobs that hand in, remove or clear, in one run.

    A job that was begun before and not finished is done again; what it did already, it finds done.

    Args:
        context: what jobs share.
        jobs: jobs of these kinds, the oldest first.
        engine: runs the steps.

    Returns:
        Id of each job -> its outcome.

    Raises:
        ParquetryError: nothing was published; what was handed in is kept.
    """
    batch = _Batch(jobs)
    for job in jobs:
        _read(context, job, batch)
    known = published_rows(context.settings.corpus.root, [key for keys in batch.removed.values() for key in keys])
    root = context.settings.corpus.root
    batch.before = Lake(root).snapshot().version if batch.removed and Lake.exists(root) else 0
    _recall(context, batch)
    for job in jobs:
        _remove_bytes(context, job, batch, known)
    version = _remove_elsewhere(context, batch)
    report = refresh_uploads(context, batch.places, engine)
    for _ in range(RUNS_AGAIN):
        if report is None or not _is_outdated(context, batch, report):
            break
        report = refresh_uploads(context, batch.places, engine)
    if report is not None:
        version = report.version
    elif batch.elsewhere:
        update_index(context)
    written = _written(context, batch, report, version)
    asked = [job for job in jobs if can_be_withdrawn(job) and context.is_cancelled(job)]
    report = take_back(context, asked)
    context.follow(version if report is None else report.version)
    ends = {job.id: end_of(report) for job in asked}
    return {job.id: ends.get(job.id) or _outcome(job, batch, written) for job in jobs}


def _read(context: JobContext, job: Job, batch: _Batch) -> None:
    """Sort in what a job asks for."""
    if job.kind == "ingest":
        batch.handed_in[job.id] = [(each["namespace"], each["path"]) for each in job.payload["uploads"]]
        batch.places.update(batch.handed_in[job.id])
    elif job.kind == "remove":
        batch.removed[job.id] = [(each["namespace"], each["document_id"]) for each in job.payload["documents"]]
    else:
        cleared = sorted(_cleared(context, job))
        batch.removed[job.id] = [key_of(place) for place in cleared]
        batch.places.update(cleared)


def _cleared(context: JobContext, job: Job) -> set[Place]:
    """Return what a clearing covers: uploads, and documents that are published without one or beside a later one.

    An earlier attempt may have deleted uploads and not their documents. An upload that came after the job was asked for
    is left. A time that is still to come says nothing: the clock was set back since. What a later job hands in stays in
    any case, and what that replaced does not come back if it is cancelled.
    """
    namespace, again = job.payload.get("namespace"), _handed_in_since(context, job)
    namespaces = context.uploads.namespaces() if namespace is None else [namespace]
    kept = {(each.namespace, each.path): each for space in namespaces for each in context.uploads.each(space)}
    meant = {
        place
        for place, upload in kept.items()
        if not job.created_at < upload.updated_at <= datetime.now(UTC)
        and _is_meant(job, upload.access, upload.uploaded_by)
    }
    for row in published_uploads(context.settings.corpus.root, namespace):
        place = (row.namespace, row.path)
        is_replaced = place in again and place in kept and kept[place].etag != row.etag
        if (place not in kept or is_replaced) and _is_meant(job, row.access, row.uploaded_by):
            meant.add(place)
    aside = SetAside(context.state)
    for place, change in again.items():
        for upload, _ in () if change is None else aside.find(change):
            if _is_meant(job, upload.access, upload.uploaded_by):
                aside.empty(str(change), *place, None)
    return meant


def _is_meant(job: Job, access: Access, uploaded_by: str | None) -> bool:
    """Return True if a clearing covers documents of an audience and owner."""
    shared, user, org = (job.payload.get(name) for name in ("shared", "user_id", "org_id"))
    if shared is (access.visibility == "individual"):
        return False
    if user is None and org is None:
        return True
    match access.visibility:
        case "individual":
            return user is not None and access.user_id == user
        case "organization":
            return org is not None and access.org_id == org
        case _:
            return shared is True or uploaded_by == user


def _recall(context: JobContext, batch: _Batch) -> None:
    """Take the counts of an earlier attempt, which may have removed documents already."""
    for job in batch.jobs:
        progress = job.progress or {}
        batch.before = min(batch.before, progress.get("version_before", batch.before))
        begun = {(each["namespace"], each["document_id"]): each["chunks"] for each in progress.get("removing", ())}
        batch.chunks |= begun
        if job.kind == "clear":
            done = begun.keys() - batch.removed[job.id] - published_rows(context.settings.corpus.root, begun).keys()
            batch.removed[job.id] += sorted(done)


def _remove_bytes(context: JobContext, job: Job, batch: _Batch, known: Mapping[Key, DocumentRow]) -> None:
    """Delete the uploads that a job removes, and note the other documents that it removes."""
    keys = batch.removed.get(job.id, ())
    by_key = {key_of(place): place for place in batch.places}
    for key in keys:
        row = known.get(key)
        if row is not None:
            batch.chunks.setdefault(key, row.chunks)
            if row.source == UPLOADS:
                by_key[key] = (row.namespace, row.path)
            else:
                batch.elsewhere.add(key)
    if keys:
        removing = [
            {"namespace": space, "document_id": document, "chunks": batch.chunks.get((space, document), 0)}
            for space, document in keys
        ]
        # The counts of a removal can be told even if this process ends in the middle of it.
        context.store.progress(job.id, {"removing": removing, "version_before": batch.before})
    places = [by_key[key] for key in keys if key in by_key and key not in batch.elsewhere]
    batch.places.update(places)
    again = _handed_in_since(context, job) if places else {}
    asked = {(each["namespace"], each["document_id"]): each.get("etag") for each in job.payload.get("documents", ())}
    undo = job.id if job.payload.get("undo") else None
    for place in places:
        if place in again:
            # What was handed in after this job asked for the removal stays; if it is cancelled, nothing comes back.
            if (change := again[place]) is not None:
                SetAside(context.state).empty(change, *place, undo)
            continue
        upload = upload_at(context, place)
        if upload is None or asked.get(key_of(place)) in (None, upload.etag):
            if upload is not None and undo is not None:
                _set_aside(context, job, upload)
            context.uploads.delete(*place)


def _set_aside(context: JobContext, job: Job, upload: Upload) -> None:
    """Keep an upload for as long as its removal can be undone; one that cannot be read is not worth it."""
    with suppress(BrokenDocument):
        SetAside(context.state).keep(job.id, upload, context.uploads.read(upload))


def _handed_in_since(context: JobContext, job: Job) -> dict[Place, str | None]:
    """Return the uploads of jobs that came after another one, each with its first change, as far as that can be told.

    An upload that did not change stays as it was; what was cancelled was taken back.
    """
    found: dict[Place, str | None] = {}
    for other in context.store.list(kind="ingest", after=job.number, limit=MOST_QUEUED):
        if other.state != "cancelled":
            # The newest come first.
            found |= changes_of(other)
    return found


def _remove_elsewhere(context: JobContext, batch: _Batch) -> int:
    """Remove documents that configured sources hold; return the version."""
    settings, root = context.settings, context.settings.corpus.root
    if not Lake.exists(root):
        return 0
    lake = Lake(root, create=True, single_writer=settings.corpus.single_writer)
    for namespace in sorted({space for space, _ in batch.elsewhere}):
        documents = sorted(document for space, document in batch.elsewhere if space == namespace)
        try:
            remove_documents(lake, documents, new_stamp(), namespace)
        except SettingsError:
            # Another run removed one of them meanwhile.
            left = [
                document
                for space, document in published_rows(context.settings.corpus.root, batch.elsewhere)
                if space == namespace
            ]
            if left:
                remove_documents(lake, sorted(left), new_stamp(), namespace)
    return lake.snapshot().version


def _is_outdated(context: JobContext, batch: _Batch, report: RunReport) -> bool:
    """Return True if another run published an upload as it was before: of two runs over one document, one gives way."""
    if report.error is not None:
        return False
    places = {place for places in batch.handed_in.values() for place in places}
    rows = published_rows(context.settings.corpus.root, map(key_of, places))
    for place in places:
        row, upload = rows.get(key_of(place)), upload_at(context, place)
        if row is not None and upload is not None and row.status == "indexed" and row.etag != upload.etag:
            return True
    return False


def _written(context: JobContext, batch: _Batch, report: RunReport | None, version: int) -> PublishedWrites:
    """Look at what is published now."""
    places = {place for places in batch.handed_in.values() for place in places}
    removed = {key for keys in batch.removed.values() for key in keys}
    rows = published_rows(context.settings.corpus.root, {*map(key_of, places), *removed})
    held = set()
    for place in places if report is not None and report.refused else ():
        row, upload = rows.get(key_of(place)), upload_at(context, place)
        if row is not None and upload is not None and row.content_hash != upload.content_hash:
            held.add(place)
    # A document that was handed in again is not one that was not removed.
    again = {key_of(place) for place in batch.places if removed and upload_at(context, place) is not None}
    return PublishedWrites(version, report, rows, removed, (removed & rows.keys()) - again, held, batch.before)


def _outcome(job: Job, batch: _Batch, written: PublishedWrites) -> JobOutcome:
    if job.kind == "ingest":
        return written.handed_in(batch.handed_in[job.id])
    keys = batch.removed[job.id]
    return written.cleared(keys) if job.kind == "clear" else written.taken_out(keys, batch.chunks)
