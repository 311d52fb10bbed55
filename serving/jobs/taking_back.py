"""Taking back of what cancelled jobs handed in, also where it is published already."""

from __future__ import annotations

from collections.abc import Sequence

from parquetry.planning.report import RunReport
from parquetry.serving.jobs.context import Failed, JobContext, failure_of
from parquetry.serving.jobs.kept_uploads import refresh_uploads, upload_at
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.published_rows import Place, key_of, published_rows
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.withdrawing import can_be_withdrawn, withdraw
from parquetry.serving.jobs.write_outcomes import JobOutcome


def take_back(context: JobContext, jobs: Sequence[Job]) -> RunReport | None:
    """Withdraw what cancelled jobs handed in, and remove it from the corpus.

    Cancelling these jobs does not stop this: it has an engine of its own. It can be done again after an interruption.

    Args:
        context: what jobs share.
        jobs: jobs of any kind; nothing is done for those that cannot be withdrawn.

    Returns:
        Report of the run; None if nothing of these jobs is published.

    Raises:
        Cancelled: this process ends.
        ParquetryError: the corpus cannot be written.
    """
    ours = [job for job in jobs if can_be_withdrawn(job)]
    for job in ours:
        withdraw(context.store, context.uploads, SetAside(context.state), job)
    places = {(each["namespace"], each["path"]) for job in ours for each in job.payload["uploads"]}
    with context.writes.engine() as engine:
        return refresh_uploads(context, _outdated(context, places), engine)


def end_of(report: RunReport | None) -> JobOutcome:
    """Return the end of a job that was taken back, with the report of that."""
    if report is None or report.error is None:
        return JobOutcome(
            {}, cancelled="it was taken back after it had been read, unless a later job handed in the same"
        )
    failure = failure_of(report.error)
    told = f"it was cancelled, but its text is still published: {failure.detail}. Reindex the document, or remove it"
    return JobOutcome({}, Failed(failure.reason, told))


def _outdated(context: JobContext, places: set[Place]) -> set[Place]:
    """Return the places whose published document is not of the upload there."""
    rows = published_rows(context.settings.corpus.root, map(key_of, places))
    outdated = set()
    for place in places:
        row, upload = rows.get(key_of(place)), upload_at(context, place)
        if row is not None and (upload is None or upload.etag != row.etag):
            outdated.add(place)
    return outdated
