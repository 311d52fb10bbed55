"""Routes of `/v1/uploads`: files that arrive in parts."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from parquetry.plural import counted, size_of
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import access_for
from parquetry.serving.files.file_records import PartialUpload, UploadedPart
from parquetry.serving.files.model import KeptFile, new_id, now
from parquetry.serving.http.callers import Namespace, Parts, WriteCaller
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.openai import forms, objects, shapes
from parquetry.serving.http.openai.errors import ERRORS
from parquetry.serving.http.openai.file_routes import expiry
from parquetry.serving.http.openai.multipart import BINARY, file_form, form_described
from parquetry.serving.http.openai.paths import PART_BYTES, PARTS, UPLOADS
from parquetry.serving.http.problems import Problem
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.listing import FILE_PREFIX
from parquetry.serving.stores.upkeep import UPLOAD_SECONDS

router = APIRouter(prefix=UPLOADS, tags=["uploads (OpenAI)"], route_class=JsonRoute, responses=ERRORS)
UploadIdPath = Annotated[str, Path(max_length=128)]
_US = 1_000_000
_BLOCK = 1 << 20
_UPLOAD: dict[str, Any] = {"response_model": objects.OpenAiUpload, "response_model_exclude_unset": True}
_PART = form_described({"data": BINARY})
"""description of the form of a part"""


@router.post("", **_UPLOAD)
def create_upload(caller: WriteCaller, namespace: Namespace, given: forms.NewUpload, parts: Parts) -> dict[str, Any]:
    """Begin a file that arrives in parts."""
    most = parts.settings.serve.max_file_bytes
    if given.bytes > most:
        raise Problem(413, "too-large", f"a file has at most {size_of(most)}", param="bytes")
    created = now()
    upload = PartialUpload(
        new_id("upload_", created),
        given.filename,
        given.bytes,
        given.purpose,
        given.mime_type,
        created,
        "pending",
        None,
        None if given.expires_after is None else given.expires_after.seconds,
        namespace,
        access_for(caller),
    )
    parts.files.add_upload(upload)
    return shapes.upload_shape(upload, None, created)


@router.post(
    f"/{{upload_id}}{PARTS}",
    openapi_extra=_PART,
    response_model=objects.OpenAiUploadPart,
    response_model_exclude_unset=True,
)
async def add_part(request: Request, caller: WriteCaller, upload_id: UploadIdPath, parts: Parts) -> dict[str, Any]:
    """Add a part of a file."""
    upload = await in_thread(_pending, parts, caller, upload_id)
    async with file_form(request, "data", parts.content.new, PART_BYTES) as form:
        created = now()
        part = UploadedPart(new_id("part_", created), upload.id, created, form.file.size)
        await in_thread(form.file.finish, part.id)
    if not await in_thread(parts.files.add_part, part, upload.bytes):
        await in_thread(parts.content.delete, part.id)
        raise Problem(400, "too-large", f"all parts together have more than the {size_of(upload.bytes)} announced")
    return shapes.part_shape(part)


@router.post("/{upload_id}/complete", **_UPLOAD)
async def complete_upload(
    caller: WriteCaller, upload_id: UploadIdPath, given: forms.UploadEnd, parts: Parts
) -> dict[str, Any]:
    """Make a file of the parts."""
    upload, file = await in_thread(_complete, parts, caller, upload_id, given)
    return shapes.upload_shape(upload, file, now())


def _complete(
    parts: Resources, caller: Principal, upload_id: str, given: forms.UploadEnd
) -> tuple[PartialUpload, KeptFile]:
    upload = _pending(parts, caller, upload_id)
    known = parts.files.parts(upload.id)
    for part_id in given.part_ids:
        if part_id not in known:
            raise Problem(400, "no-such-part", f"part_ids: no part {part_id[:80]!r}", param="part_ids")
    size = sum(known[part_id].bytes for part_id in given.part_ids)
    if size != upload.bytes:
        problem = f"the parts have {counted(size, 'byte')}; announced: {upload.bytes:,}"
        raise Problem(400, "wrong-size", problem, param="part_ids")
    created = now()
    seconds = upload.file_seconds
    policy = None if seconds is None else forms.FileExpiry(anchor="created_at", seconds=seconds)
    file = KeptFile(
        new_id(FILE_PREFIX, created),
        upload.filename,
        size,
        upload.purpose,
        upload.content_type,
        created,
        expiry(created, upload.purpose, policy),
        upload.namespace,
        upload.access,
    )
    parts.content.joined(file.id, given.part_ids)
    if given.md5 is not None and _md5(parts, file.id) != given.md5.lower():
        parts.content.delete(file.id)
        raise Problem(400, "wrong-checksum", "md5: the bytes have another one; send the parts again", param="md5")
    if not parts.files.end_upload(upload.id, "completed", file):
        parts.content.delete(file.id)
        raise _not_pending("completed")
    _drop_parts(parts, upload.id)
    return _upload(parts, caller, upload.id), file


@router.post("/{upload_id}/cancel", **_UPLOAD)
def cancel_upload(caller: WriteCaller, upload_id: UploadIdPath, parts: Parts) -> dict[str, Any]:
    """Give up a file that arrives in parts."""
    upload = _pending(parts, caller, upload_id)
    if not parts.files.end_upload(upload.id, "cancelled"):
        raise _not_pending("completed")
    _drop_parts(parts, upload.id)
    return shapes.upload_shape(_upload(parts, caller, upload.id), None, now())


def _upload(parts: Resources, caller: Principal, upload_id: str) -> PartialUpload:
    upload = parts.files.upload(caller, upload_id)
    if upload is None:
        raise NotVisible("no-such-upload", f"no upload {upload_id[:80]!r}")
    return upload


def _pending(parts: Resources, caller: Principal, upload_id: str) -> PartialUpload:
    upload = _upload(parts, caller, upload_id)
    if upload.status != "pending":
        raise _not_pending(upload.status)
    if upload.created_at + UPLOAD_SECONDS * _US <= now():
        raise _not_pending("expired")
    return upload


def _not_pending(status: str) -> Problem:
    return Problem(400, "upload-ended", f"the upload is {status}; begin another one", param="upload_id")


def _drop_parts(parts: Resources, upload_id: str) -> None:
    parts.content.delete(*parts.files.parts(upload_id))
    parts.files.remove_parts(upload_id)


def _md5(parts: Resources, id: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with parts.content.path(id).open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
