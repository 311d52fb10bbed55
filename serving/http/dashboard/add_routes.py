"""The page to add documents: files, addresses and pasted text, over the jobs that all uploads go through."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData

from parquetry.model import Access, Visibility
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import access_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Parts, WriteCaller, namespace_of
from parquetry.serving.http.dashboard.forms import CheckedForm, files, text
from parquetry.serving.http.dashboard.html import HEADERS, page, redirect
from parquetry.serving.http.dashboard.paths import ADD
from parquetry.serving.http.operation_routes import job_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.uploading import check_size, imported
from parquetry.serving.jobs.model import Job
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import fetching, in_thread
from parquetry.serving.service.cancelling import cancel
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import LARGE_BYTES, NewContent, describes, ingest, names_there
from parquetry.serving.web.additions import additions_of, audiences, state_of

router = APIRouter(include_in_schema=False)
_LONGEST_NAME = 255
_MOST_NAMES = 1000
"""names that are looked up together"""
_MOST_JOBS = 100
"""jobs whose states are told together"""
_VISIBILITIES: dict[str, Visibility] = {each: each for each in ("public", "organization", "individual")}
JobId = Annotated[str, Path(max_length=64)]


@router.get(ADD)
def show_add(request: Request, caller: WriteCaller, parts: Parts) -> Response:
    """Show the forms for new documents."""
    default = namespace_of(parts, caller)
    known = [default]
    if parts.follower.version is not None and caller.may("read"):
        with parts.follower.reader() as reader:
            known = sorted({default, *shown.namespaces(reader, caller)})
    return page(
        request,
        "add.html",
        namespaces=known,
        default=default,
        audiences=audiences(caller),
        most=parts.settings.serve.max_document_bytes,
        large=LARGE_BYTES,
        describes=describes(parts.settings),
        described=parts.settings.extraction.include_image_descriptions,
        priced=parts.settings.llm.priced,
    )


@router.post(f"{ADD}/files")
async def add_files(request: Request, caller: WriteCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Add files."""
    sent = files(fields, "file")
    if not sent:
        raise Problem(422, "invalid-request", "choose at least one file")
    access, most = _access(caller, fields), parts.settings.serve.max_document_bytes
    # A file of a folder is sent alone, and named by its path in it.
    named = text(fields, "name") if len(sent) == 1 else ""
    contents = []
    for each in sent:
        content, name = await each.read(), named or each.filename or ""
        check_size(content, name, most)
        filename, described = name.rpartition("/")[2] or name, _described(parts, fields, name)
        contents.append(
            NewContent(content, filename, access, name=name, content_type=each.content_type, describe=described)
        )
    return await _submitted(request, caller, parts, fields, contents)


@router.post(f"{ADD}/text")
async def add_text(request: Request, caller: WriteCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Add pasted text, as a document in Markdown."""
    name, pasted = text(fields, "name").strip(), text(fields, "text")
    if not name or len(name) > _LONGEST_NAME or not pasted.strip():
        raise Problem(
            422, "invalid-request", f"give the text a name of at most {_LONGEST_NAME} characters, and paste it"
        )
    filename = name if "." in name else f"{name}.md"
    content = pasted.encode("utf-8", "replace")
    check_size(content, filename, parts.settings.serve.max_document_bytes)
    made = NewContent(
        content, filename, _access(caller, fields), name=filename, content_type="text/markdown", kind="text"
    )
    return await _submitted(request, caller, parts, fields, [made])


@router.post(f"{ADD}/url")
async def add_url(request: Request, caller: WriteCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Import a web page, or the captions of a video."""
    access, address = _access(caller, fields), text(fields, "url").strip()
    made: NewContent = await fetching(imported, parts.settings, address, {}, access)
    return await _submitted(request, caller, parts, fields, [made])


@router.post(f"{ADD}/known")
async def find_known(caller: WriteCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Tell a script which of some names would replace a document."""
    try:
        names = json.loads(text(fields, "names"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or len(names) > _MOST_NAMES or not all(isinstance(each, str) for each in names):
        raise Problem(422, "invalid-request", f"names: a list in JSON of at most {_MOST_NAMES} names")
    namespace = namespace_of(parts, caller, text(fields, "namespace") or None)
    known: Sequence[str] = await in_thread(names_there, parts, namespace, names, _access(caller, fields))
    return JSONResponse({"known": known}, headers=dict(HEADERS))


@router.get(f"{ADD}/states")
def show_states(caller: WriteCaller, parts: Parts, job: Annotated[list[str], Query(max_length=_MOST_JOBS)]) -> Response:
    """Tell a script what became of documents; jobs that the caller does not see are left out."""
    told = []
    for each in job:
        try:
            told.append(state_of(_ingest(parts, caller, each)))
        except NotVisible:
            continue
    return JSONResponse({"jobs": told}, headers=dict(HEADERS))


@router.get(f"{ADD}/jobs/{{job_id}}")
def show_job(request: Request, job_id: JobId, caller: WriteCaller, parts: Parts) -> Response:
    """Show what became of documents that were handed in."""
    return _job_page(request, _ingest(parts, caller, job_id))


@router.post(f"{ADD}/jobs/{{job_id}}/cancel")
async def cancel_job(request: Request, job_id: JobId, caller: WriteCaller, parts: Parts, _: CheckedForm) -> Response:
    """Take back documents that were handed in and are not searchable yet."""
    job: Job = await in_thread(_ingest, parts, caller, job_id)
    ended: Job = await in_thread(cancel, parts, job)
    if _is_script(request):
        return JSONResponse({"job": ended.id, "state": ended.state}, headers=dict(HEADERS))
    return redirect(f"{ADD}/jobs/{job.id}")


def _ingest(parts: Resources, caller: Principal, job_id: str) -> Job:
    job = job_of(parts, caller, job_id)
    if job.kind != "ingest":
        raise NotVisible("no-such-job", f"no documents were handed in by the job {job_id!r}")
    return job


def _described(parts: Resources, fields: FormData, name: str) -> bool | None:
    """Return the choice for a picture; None for that of the settings, and for what is none."""
    if not describes(parts.settings) or not (mimetypes.guess_type(name)[0] or "").startswith("image/"):
        return None
    wanted = text(fields, "describe") == "on"
    return None if wanted == parts.settings.extraction.include_image_descriptions else wanted


def _access(caller: Principal, fields: FormData) -> Access:
    return access_for(caller, _VISIBILITIES.get(text(fields, "visibility")))


async def _submitted(
    request: Request, caller: Principal, parts: Resources, fields: FormData, contents: list[NewContent]
) -> Response:
    namespace = namespace_of(parts, caller, text(fields, "namespace") or None)
    record = Recorded(request, caller, "knowledge.ingest", namespace)
    job = await in_thread(partial(ingest, can_be_withdrawn=True), parts, caller, namespace, contents)
    record.write(documents=len(contents), status=202)
    if _is_script(request):
        return JSONResponse({"job": job.id}, headers=dict(HEADERS))
    return redirect(f"{ADD}/jobs/{job.id}")


def _job_page(request: Request, job: Job) -> Response:
    values: dict[str, Any] = {"job": job, "additions": additions_of(job)}
    return page(request, "job_part.html" if _is_part(request) else "job.html", **values)


def _is_script(request: Request) -> bool:
    """Return True for a script that asks for JSON."""
    return request.headers.get("accept") == "application/json"


def _is_part(request: Request) -> bool:
    """Return True for a script that asks for a part of a page."""
    return request.headers.get("hx-request") == "true"
