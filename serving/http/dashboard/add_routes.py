"""The page to add documents: files, addresses and pasted text, over the jobs that all uploads go through."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.datastructures import FormData

from parquetry.model import Access, Visibility
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import access_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Parts, WriteCaller, namespace_of
from parquetry.serving.http.dashboard.forms import CheckedForm, files, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import ADD
from parquetry.serving.http.operation_routes import job_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.uploading import check_size, imported
from parquetry.serving.jobs.model import Job
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import fetching, in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import LARGE_BYTES, NewContent, ingest
from parquetry.serving.web.additions import additions_of, audiences

router = APIRouter(include_in_schema=False)
_LONGEST_NAME = 255
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
    )


@router.post(f"{ADD}/files")
async def add_files(request: Request, caller: WriteCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Add files."""
    sent = files(fields, "file")
    if not sent:
        raise Problem(422, "invalid-request", "choose at least one file")
    access, most = _access(caller, fields), parts.settings.serve.max_document_bytes
    contents = []
    for each in sent:
        content, name = await each.read(), each.filename or ""
        check_size(content, name, most)
        contents.append(NewContent(content, name, access, name=name, content_type=each.content_type))
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


@router.get(f"{ADD}/jobs/{{job_id}}")
def show_job(request: Request, job_id: JobId, caller: WriteCaller, parts: Parts) -> Response:
    """Show what became of documents that were handed in."""
    job = job_of(parts, caller, job_id)
    if job.kind != "ingest":
        raise NotVisible("no-such-job", f"no documents were handed in by the job {job_id!r}")
    return _job_page(request, job)


def _access(caller: Principal, fields: FormData) -> Access:
    return access_for(caller, _VISIBILITIES.get(text(fields, "visibility")))


async def _submitted(
    request: Request, caller: Principal, parts: Resources, fields: FormData, contents: list[NewContent]
) -> Response:
    namespace = namespace_of(parts, caller, text(fields, "namespace") or None)
    record = Recorded(request, caller, "knowledge.ingest", namespace)
    job = await in_thread(ingest, parts, caller, namespace, contents)
    record.write(documents=len(contents), status=202)
    if _is_part(request):
        part: Response = await in_thread(_job_page, request, job)
        return part
    return redirect(f"{ADD}/jobs/{job.id}")


def _job_page(request: Request, job: Job) -> Response:
    values: dict[str, Any] = {"job": job, "additions": additions_of(job)}
    return page(request, "job_part.html" if _is_part(request) else "job.html", **values)


def _is_part(request: Request) -> bool:
    """Return True for a script that asks for a part of a page."""
    return request.headers.get("hx-request") == "true"
