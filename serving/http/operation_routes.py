"""Routes of `/api/v1` beside the knowledge: jobs, runs, versions, entries and feedback."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import Forbidden, NotVisible
from parquetry.serving.access.visibility import access_for, filters_for
from parquetry.serving.http import operation_models as forms
from parquetry.serving.http.callers import (
    AdminCaller,
    Namespace,
    Parts,
    PublishedParts,
    ReadCaller,
    SearchCaller,
    WriteCaller,
    namespace_in_body,
    namespace_of,
)
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.judging import demand_judging, result_to_judge
from parquetry.serving.http.writes import ACCEPTED, AtOnce, outcome
from parquetry.serving.jobs.model import Job, Kind, State
from parquetry.serving.search.entry_reading import live_entries
from parquetry.serving.search.run_rows import run_json
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.cancelling import cancel
from parquetry.serving.service.feedback import Feedback, Judge
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.session_inbox import keep_session
from parquetry.serving.service.writing import submit
from parquetry.storage.database import rows
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.filters import Filters, restrict

router = APIRouter(prefix="/api/v1", tags=["operation"], route_class=JsonRoute)
Limit = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]
JobId = Annotated[str, Path(max_length=64)]


def job_item(job: Job) -> forms.JobItem:
    """Return a job as it is shown."""
    names = ("id", "kind", "namespace", "state", "reason", "detail", "created_at", "started_at", "finished_at")
    values = {name: getattr(job, name) for name in names}
    return forms.JobItem(
        **values,
        result=None if job.result is None else dict(job.result),
        progress=None if job.progress is None else dict(job.progress),
    )


def job_of(parts: Resources, caller: Principal, job_id: str) -> Job:
    """Return a job that the caller may see: its own, or any for those who see everything.

    Raises:
        NotVisible: it does not exist for the caller.
    """
    job = parts.jobs.get(job_id)
    if job is None or not _is_own(caller, job):
        raise NotVisible("no-such-job", f"no job {job_id!r}")
    return job


def _is_own(caller: Principal, job: Job) -> bool:
    if caller.sees_everything or job.owner["token_id"] == _token(caller):
        return True
    user = caller.user_id
    return user is not None and job.owner["user_id"] == user and caller.sees(job.namespace or "")


def _token(caller: Principal) -> str:
    """Return the token id of a caller; that of no job for an anonymous one, as the operator's jobs have none."""
    return caller.token_id or "anonymous"


@router.get("/jobs")
def list_jobs(
    caller: ReadCaller,
    parts: Parts,
    state: State | None = None,
    kind: Kind | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> forms.JobList:
    """List jobs, the newest first: the caller's own, or all for an administrator."""
    found = parts.jobs.list(state=state, kind=kind, limit=limit, offset=offset, **_chosen(caller))
    return forms.JobList(jobs=[job_item(each) for each in found])


def _chosen(caller: Principal) -> dict[str, Any]:
    if caller.sees_everything:
        return {}
    if caller.user_id is None:
        return {"owner": {"token_id": _token(caller)}}
    return {"owner": {"user_id": caller.user_id}, "namespaces": caller.namespaces}


@router.get("/jobs/{job_id}")
def get_job(job_id: JobId, caller: ReadCaller, parts: Parts) -> forms.JobItem:
    """Return a job."""
    return job_item(job_of(parts, caller, job_id))


@router.post("/jobs", status_code=201, response_model=forms.JobItem, responses=ACCEPTED)
async def start_job(asked: forms.NewJob, caller: AdminCaller, parts: Parts, at_once: AtOnce) -> Any:
    """Start a refresh, a reindex, a restore, or the removal of uploads."""
    if asked.namespace is not None or caller.namespaces is not None:
        namespace = namespace_of(parts, caller, asked.namespace)
    else:
        namespace = None
    job = await in_thread(submit, parts, caller, asked.kind, namespace, _payload(asked, caller, namespace))
    done = await outcome(parts, job, at_once=at_once)
    return done if isinstance(done, JSONResponse) else job_item(done)


def _payload(asked: forms.NewJob, caller: Principal, namespace: str | None) -> dict[str, Any]:
    match asked.kind:
        case "refresh":
            return {"targets": asked.targets, "allow_removals": asked.allow_removals, "rehash": asked.rehash}
        case "reindex":
            return {"documents": asked.documents, "all": asked.all, "embeddings_only": asked.embeddings_only}
        case "restore":
            return {"version": asked.version}
        case "clear":
            return {
                "namespace": namespace,
                "shared": asked.shared,
                "user_id": caller.user_id,
                "org_id": caller.org_id,
            }


@router.delete("/jobs/{job_id}")
def cancel_job(job_id: JobId, caller: WriteCaller, parts: Parts) -> forms.JobItem:
    """Cancel a job: at once if it waits, at the next safe point if it runs."""
    return job_item(cancel(parts, job_of(parts, caller, job_id)))


def demand_everything(caller: Principal) -> None:
    """Refuse a token that is limited to a user, an organization or namespaces: runs name documents of all.

    Raises:
        Forbidden: the caller's is.
    """
    if not caller.sees_everything:
        raise Forbidden(
            "right-missing", "runs are of the whole corpus: they need a token without user, organization and namespaces"
        )


@router.get("/runs")
def list_runs(caller: AdminCaller, parts: PublishedParts, limit: Limit = 100, offset: Offset = 0) -> forms.RunList:
    """List runs, the newest first."""
    demand_everything(caller)
    with parts.follower.reader() as reader, closing(reader.index.session()) as session:
        found = rows(session, f"SELECT * FROM runs ORDER BY started_at DESC LIMIT {limit:d} OFFSET {offset:d}")
    return forms.RunList(runs=[run_json(each) for each in found])


@router.get("/runs/{run_id}")
def get_run(run_id: Annotated[str, Path(max_length=255)], caller: AdminCaller, parts: PublishedParts) -> dict[str, Any]:
    """Return a run, with the documents that failed in it."""
    demand_everything(caller)
    with parts.follower.reader() as reader, closing(reader.index.session()) as session:
        found = rows(session, "SELECT * FROM runs WHERE run_id = $1", [run_id])
        failed = rows(session, "SELECT * EXCLUDE (run_id) FROM failures WHERE run_id = $1", [run_id])
    if not found:
        raise NotVisible("no-such-run", f"no run {run_id[:80]!r}")
    return {**run_json(found[0]), "failures": failed}


@router.get("/versions")
def list_versions(caller: ReadCaller, parts: PublishedParts, limit: Limit = 100) -> forms.VersionList:
    """List the published versions, the newest first."""
    with parts.follower.reader() as reader:
        found = reader.history(limit)
        current = reader.snapshot.version
    versions = [
        forms.VersionItem(
            version=each.version,
            run_id=each.run_id,
            published_at=each.at,
            # Documents that the caller may not see are among them.
            rows=each.documents if caller.sees_everything else None,
        )
        for each in found
        if each.version
    ]
    return forms.VersionList(versions=versions, current=current)


@router.get("/entries")
def list_entries(
    caller: ReadCaller,
    parts: PublishedParts,
    namespace: Namespace,
    contains: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> forms.EntryList:
    """List knowledge entries, the most recently stated first."""
    filters = filters_for(caller, namespace, Filters(what="entries"))
    with parts.follower.reader() as reader, closing(connect_readable(reader.snapshot)) as connection:
        if filters.caller is not None:
            restrict(connection, filters.caller)
        found = live_entries(connection, namespace, contains=contains)
    page = found[offset : offset + limit]
    names = ("entry_id", "namespace", "kind", "text", "visibility", "confidence", "sessions", "last_said")
    entries = [forms.EntryItem(**{each: row[each] for each in names}) for row in page]
    return forms.EntryList(entries=entries, total=len(found))


@router.post("/sessions", status_code=201, response_model=forms.JobItem, responses=ACCEPTED)
async def add_session(
    request: Request,
    given: forms.NewSession,
    caller: WriteCaller,
    parts: Parts,
    _: Namespace,
    at_once: AtOnce,
) -> Any:
    """Learn from a finished chat; the same session again is one session."""
    namespace = namespace_in_body(parts, caller, request, given.namespace)
    access = access_for(caller, user_id=given.user_id, org_id=given.org_id)
    user, org = access.user_id or caller.user_id, access.org_id or caller.org_id
    messages = [message.model_dump() for message in given.messages]
    folder = await in_thread(
        keep_session, parts.state, namespace, (user, org), given.session_id, messages, given.metadata
    )
    payload = {"targets": [str(folder)], "user_id": user, "org_id": org}
    job = await in_thread(submit, parts, caller, "sessions", namespace, payload)
    done = await outcome(parts, job, at_once=at_once)
    return done if isinstance(done, JSONResponse) else job_item(done)


@router.post("/feedback", status_code=201)
def add_feedback(
    request: Request,
    given: forms.NewFeedback,
    caller: SearchCaller,
    parts: PublishedParts,
    _: Namespace,
) -> Feedback:
    """Keep a judgement on a result, in the place of the caller's former one."""
    demand_judging(parts)
    namespace = namespace_in_body(parts, caller, request, given.namespace)
    with parts.follower.reader() as reader:
        result = result_to_judge(reader, caller, given.document_id, given.chunk_id, namespace)
        version = reader.snapshot.version
    return parts.feedback.judge(
        Judge.of(caller), given.query, result, relevant=given.relevant, comment=given.comment, version=version
    )


@router.get("/feedback")
def list_feedback(caller: AdminCaller, parts: Parts, limit: Limit = 100, offset: Offset = 0) -> forms.FeedbackList:
    """List judgements, the newest first: all, or those of the caller's user if the token names one.

    A token of an organization sees those that were given with it.
    """
    own = None if caller.caller() is None else Judge.of(caller)
    judged = parts.feedback.list(caller.namespaces, limit, offset, own=own)
    # Of no one namespace.
    answers = [] if caller.namespaces is not None else parts.feedback.answers(limit, offset, own=own)
    return forms.FeedbackList(feedback=list(judged), answers=list(answers))
