"""Routes of `/v1/files`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import FileResponse, PlainTextResponse, Response
from pydantic import ValidationError

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import access_for, demand_change
from parquetry.serving.files.model import DAY, KeptFile, new_id, now
from parquetry.serving.http.callers import Namespace, Parts, ReadCaller, WriteCaller
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.openai import forms, objects, shapes
from parquetry.serving.http.openai.errors import ERRORS
from parquetry.serving.http.openai.multipart import BINARY, FileForm, file_form, form_described
from parquetry.serving.http.openai.paths import FILES
from parquetry.serving.http.openai.waiting import removed
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.writes import AtOnce
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.documents import text_of
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.listing import FILE_PREFIX, cursor, file_named
from parquetry.serving.stores.namespaces import document_of, no_such_file, published
from parquetry.serving.stores.upkeep import detach_everywhere, finish_file
from parquetry.sources.uploads.identity import UPLOADS

router = APIRouter(prefix=FILES, tags=["files (OpenAI)"], route_class=JsonRoute, responses=ERRORS)
FileIdPath = Annotated[str, Path(max_length=128)]
BATCH_DAYS = 30
"""days after which files of the purpose `batch` expire, as OpenAI states it"""
_US = 1_000_000
_NO_TYPE = "application/octet-stream"


_FORM = form_described(
    {
        "file": BINARY,
        "purpose": {"type": "string", "enum": list(get_args(forms.Purpose))},
        "expires_after[anchor]": {"type": "string", "enum": ["created_at"]},
        "expires_after[seconds]": {"type": "integer", "minimum": 3600, "maximum": 2_592_000},
    },
    required=("file", "purpose"),
)
"""description of the form of an upload"""


@router.post("", openapi_extra=_FORM, response_model=objects.OpenAiFile, response_model_exclude_unset=True)
async def create_file(request: Request, caller: WriteCaller, namespace: Namespace, parts: Parts) -> dict[str, Any]:
    """Keep a file, to be attached to vector stores."""
    access = access_for(caller)
    async with file_form(request, "file", parts.content.new, parts.settings.serve.max_file_bytes) as form:
        fields = _fields(form)
        created = now()
        file = KeptFile(
            new_id(FILE_PREFIX, created),
            form.filename or "file",
            form.file.size,
            fields.purpose,
            None if form.content_type in (None, _NO_TYPE) else form.content_type,
            created,
            expiry(created, fields.purpose, fields.expires_after),
            namespace,
            access,
        )
        await in_thread(_keep, parts, form, file)
    return shapes.file_shape(file)


def _keep(parts: Resources, form: FileForm, file: KeptFile) -> None:
    form.file.finish(file.id)
    with ExitStack() as unfinished:
        unfinished.callback(parts.content.delete, file.id)
        parts.files.add(file)
        unfinished.pop_all()


def _fields(form: FileForm) -> forms.FileFields:
    """Return the fields of a form beside its file."""
    given: dict[str, Any] = {}
    for name, value in form.fields.items():
        if name.startswith("expires_after[") and name.endswith("]"):
            given.setdefault("expires_after", {})[name[14:-1]] = value
        else:
            given[name] = value
    try:
        return forms.FileFields.model_validate_strings(given)
    except ValidationError as error:
        (first, *_) = error.errors()
        place = ".".join(map(str, first["loc"]))[:80]
        told = "unknown field" if first["type"] == "extra_forbidden" else first["msg"]
        raise Problem(400, "invalid-request", f"{place}: {told}", param=place) from None


def expiry(created: int, purpose: str, given: forms.FileExpiry | None) -> int | None:
    """Return the time at which a file expires, in microseconds since 1970; None if it does not.

    Args:
        created: microseconds since 1970.
        purpose: purpose of the file.
        given: policy of the request.
    """
    seconds = BATCH_DAYS * DAY if purpose == "batch" else None
    if given is not None:
        seconds = given.seconds
    return None if seconds is None else created + seconds * _US


@router.get("", response_model=objects.OpenAiList[objects.OpenAiFile], response_model_exclude_unset=True)
def list_files(
    caller: ReadCaller,
    parts: Parts,
    purpose: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: forms.Order = "desc",
    after: Annotated[str | None, Query(max_length=128)] = None,
) -> dict[str, Any]:
    """List the files that were uploaded."""
    place = None if after is None else cursor(after, FILE_PREFIX, "after")
    found = parts.files.list(caller, purpose, limit + 1, newest_first=order == "desc", after=place)
    return shapes.list_shape([shapes.file_shape(file) for file in found[:limit]], has_more=len(found) > limit)


@router.get("/{file_id}", response_model=objects.OpenAiFile, response_model_exclude_unset=True)
def get_file(caller: ReadCaller, file_id: FileIdPath, parts: Parts) -> dict[str, Any]:
    """Return a file, or a document of a namespace."""
    file = parts.files.get(caller, file_id)
    if file is not None:
        return shapes.file_shape(file)
    return shapes.document_shape(_document(parts, caller, file_id)[0])


def _document(parts: Resources, caller: Principal, file_id: str, *, with_text: bool = False) -> tuple[Any, str]:
    with published(parts) as reader:
        if reader is None:
            raise no_such_file(file_id)
        row = document_of(reader, caller, file_id)
        return row, text_of(reader, row) if with_text else ""


@router.get("/{file_id}/content", response_class=Response)
def get_content(caller: ReadCaller, file_id: FileIdPath, parts: Parts) -> Response:
    """Return the bytes of a file; of a document that was not uploaded, its text."""
    # A browser never shows it as a page of the service.
    safe = {"X-Content-Type-Options": "nosniff"}
    file = parts.files.get(caller, file_id)
    if file is not None:
        path = parts.content.path(file.id)
        if not path.is_file():
            raise Problem(500, "missing-bytes", "the bytes of the file are gone; upload it again")
        return FileResponse(path, media_type=_NO_TYPE, filename=file.filename, headers=safe)
    row, text = _document(parts, caller, file_id, with_text=True)
    if row["source"] == UPLOADS:
        upload = parts.uploads.get(row["namespace"], row["path"])
        if upload is not None:
            return Response(parts.uploads.read(upload), media_type=_NO_TYPE, headers=safe)
    return PlainTextResponse(text, headers=safe)


@router.delete("/{file_id}", response_model=objects.DeletedFile, response_model_exclude_unset=True)
async def delete_file(caller: WriteCaller, file_id: FileIdPath, parts: Parts, at_once: AtOnce) -> dict[str, Any]:
    """Delete a file; it is removed from all vector stores."""
    file = await in_thread(_deletable, parts, caller, file_id)
    await in_thread(parts.files.mark_deleted, file.id)
    jobs = await in_thread(detach_everywhere, parts, file)
    if await removed(parts, jobs, at_once=at_once):
        await in_thread(finish_file, parts, file)
    return shapes.deleted_shape(file.id, "file")


def _deletable(parts: Resources, caller: Principal, file_id: str) -> KeptFile:
    file = parts.files.get(caller, file_id, deleted=True)
    if file is None:
        with published(parts) as reader:
            if reader is not None:
                document_of(reader, caller, file_id)
                raise Problem(403, "read-only-file", "this file is a document of a namespace; delete it at its source")
        file = file_named(parts, caller, file_id)
    demand_change(caller, file.namespace, file.access)
    return file
