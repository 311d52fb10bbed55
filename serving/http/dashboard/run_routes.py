"""Pages of runs: those in work, their history, one of them, and what is tried again."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.errors import SettingsError
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import AdminCaller, Parts, PublishedParts
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import RUNS
from parquetry.serving.http.operation_routes import demand_everything
from parquetry.serving.http.problems import Problem
from parquetry.serving.jobs.model import State
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import submit
from parquetry.serving.web.jobs import ShownJob, shown_job
from parquetry.serving.web.runs import (
    RUNS_SHOWN,
    kinds_of_runs,
    listed_runs,
    not_searchable,
    run_page,
    sources_of,
    to_retry,
)
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.run_views import run_views

router = APIRouter(include_in_schema=False)
Name = Annotated[str, Query(max_length=255)]
_OPEN: tuple[State, ...] = ("running", "queued")
_MOST_OPEN = 20
"""jobs of one state that the page shows"""


@router.get(RUNS)
def show_runs(
    request: Request,
    caller: AdminCaller,
    parts: Parts,
    kind: Name = "",
    number: Annotated[int, Query(alias="page", ge=1, le=1_000_000)] = 1,
    notice: Name = "",
) -> Response:
    """Show the runs in work, what needs attention, the sources, and the history."""
    demand_everything(caller)
    values: dict[str, Any] = {"runs": [], "total": 0, "kinds": [], "failures": [], "sources": []}
    root = parts.settings.corpus.root
    if Lake.exists(root):
        with run_views(Lake(root)) as connection:
            values["runs"], values["total"] = listed_runs(connection, number, kind or None)
            values["kinds"] = kinds_of_runs(connection)
            values["sources"] = sources_of(parts.settings, connection)
            if parts.follower.version is None:
                values["failures"] = not_searchable(connection)
    else:
        values["sources"] = sources_of(parts.settings, None)
    if parts.follower.version is not None:
        # The index has one row for each document, the tables one for each time that it was published.
        with parts.follower.reader() as reader, closing(reader.index.session()) as session:
            values["failures"] = not_searchable(session)

    def link(**changed: Any) -> str:
        told = {"kind": kind, "page": number, **changed}
        return f"{RUNS}?{urlencode({name: value for name, value in told.items() if value})}"

    return page(
        request,
        "runs.html",
        open_jobs=_open_jobs(parts),
        ended=_ended_jobs(parts),
        reviews=len(parts.reviews.waiting()),
        kind=kind,
        number=number,
        pages=max(1, -(-values["total"] // RUNS_SHOWN)),
        link=link,
        notice=_NOTICES.get(notice, ""),
        may_run=not parts.settings.serve.read_only,
        **values,
    )


_NOTICES = {"none": "Nothing is left to be tried again: these documents are searchable, or failed for another reason."}


def _open_jobs(parts: Resources) -> list[ShownJob]:
    found = [job for state in _OPEN for job in parts.jobs.list(state=state, limit=_MOST_OPEN)]
    return [shown_job(job) for job in found]


def _ended_jobs(parts: Resources) -> list[ShownJob]:
    """Return the newest jobs that ended without a version: the history of the corpus does not tell of all of them."""
    found = (job for state in ("failed", "cancelled") for job in parts.jobs.list(state=state, limit=_MOST_FAILED))
    return [shown_job(job) for job in sorted(found, key=lambda job: -job.number)[:_MOST_FAILED]]


_MOST_FAILED = 5


@router.get(f"{RUNS}/history/{{run_id}}")
def show_run(
    request: Request, run_id: Annotated[str, Path(max_length=255)], caller: AdminCaller, parts: PublishedParts
) -> Response:
    """Show one run: its outcome, failures, costs, stages and slowest documents."""
    demand_everything(caller)
    with parts.follower.reader() as reader, run_views(Lake(parts.settings.corpus.root)) as connection:
        try:
            found = run_page(connection, run_id)
        except SettingsError as error:
            raise NotVisible("no-such-run", f"no run {run_id[:80]!r}") from error
        current = reader.snapshot.version
    return page(request, "run.html", found=found, current=current, may_run=not parts.settings.serve.read_only)


@router.post(f"{RUNS}/retry")
async def try_again(request: Request, caller: AdminCaller, parts: PublishedParts, fields: CheckedForm) -> Response:
    """Read the documents again that failed for one reason, and no others."""
    demand_everything(caller)
    stage, reason, run = (text(fields, name)[:255] for name in ("stage", "reason", "run"))
    if not reason:
        raise Problem(422, "invalid-request", "name the reason of the documents to try again")
    documents = await in_thread(_to_retry, parts, stage, reason, run or None)
    if not documents:
        return redirect(f"{RUNS}?notice=none")
    payload = {"documents": documents, "all": False, "embeddings_only": False, "because": f"{stage}/{reason}"}
    record = Recorded(request, caller, "run.asked", None)
    job = await in_thread(submit, parts, caller, "reindex", None, payload)
    record.write(status=303, target=f"reindex {job.id}", documents=len(documents))
    return redirect(f"{RUNS}/jobs/{job.id}")


def _to_retry(parts: Resources, stage: str, reason: str, run: str | None) -> list[str]:
    with run_views(Lake(parts.settings.corpus.root)) as connection:
        return to_retry(connection, stage, reason, run)
