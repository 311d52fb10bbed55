"""Undoing of a removal: uploads are kept again as they were, and other documents published as they were."""

from __future__ import annotations

from parquetry.planning.rows import new_stamp
from parquetry.serving.jobs.context import Failed, JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.indexing import update_index
from parquetry.serving.jobs.kept_uploads import refresh_uploads
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.published_rows import Place, key_of
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.sources.uploads.store import Damaged
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.rewrite import restore_documents


def undo_removal(context: JobContext, job: Job, engine: StoppableEngine) -> JobOutcome:
    """Bring back the documents of a removal that are not there again by now.

    Args:
        context: what jobs share.
        job: names the job that removed them.
        engine: runs the steps.

    Raises:
        Failed: there is no such removal any more.
        ParquetryError: nothing was published.
    """
    removal = context.store.get(job.payload["removal"])
    if removal is None or removal.kind != "remove" or removal.result is None or not removal.payload.get("undo"):
        raise Failed("too-late", "this removal is not known any more, and cannot be undone")
    aside = SetAside(context.state)
    kept: set[Place] = set()
    for upload, content in aside.find(removal.id):
        place = (upload.namespace, upload.path)
        kept.add(place)
        if not _is_there(context, place):
            context.uploads.put_back(upload, content)
    report = refresh_uploads(context, kept, engine)
    settings, back = context.settings, {key_of(place) for place in kept}
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    version = 0 if report is None else report.version
    asked = {(each["namespace"], each["document_id"]) for each in removal.payload["documents"]}
    for namespace in sorted({space for space, _ in asked - back}):
        those = {key for key in asked - back if key[0] == namespace}
        done = restore_documents(lake, removal.result["version_before"], those, new_stamp(), namespace)
        version, back = done.version, back | those
    update_index(context)
    context.follow(version)
    aside.drop(removal.id)
    return JobOutcome({"version": version, "removal": removal.id, "documents": len(back)})


def _is_there(context: JobContext, place: Place) -> bool:
    try:
        return context.uploads.get(*place) is not None
    except Damaged:
        return True
