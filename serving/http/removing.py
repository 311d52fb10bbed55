"""Removal of documents through the service."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from parquetry.model import Access
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import demand_change
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.writes import outcome
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import submit
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.store import Damaged


async def remove_document(
    request: Request,
    parts: Resources,
    caller: Principal,
    namespace: str,
    document_id: str,
    *,
    at_once: bool,
    undo: bool = False,
) -> dict[str, Any] | JSONResponse:
    """Remove a document, and its bytes if it was uploaded.

    Args:
        request: the request.
        parts: parts of the service.
        caller: its maker.
        namespace: namespace of the document.
        document_id: id of the document.
        at_once: do not wait for the end.
        undo: keep for a while what is needed to undo it.

    Returns:
        `document_id` and the number of its `chunks`; or the answer 202.

    Raises:
        NotVisible: it does not exist for the caller.
        Forbidden: the caller may not change it.
        Problem: the job failed.
    """
    record = Recorded(request, caller, "knowledge.delete", namespace)
    row, etag = await in_thread(_changeable, parts, caller, namespace, document_id)
    named = {"namespace": row["namespace"], "document_id": document_id, "etag": etag, "name": row["filename"]}
    payload = {"documents": [named], "undo": undo}
    job = await in_thread(submit, parts, caller, "remove", namespace, payload)
    done = await outcome(parts, job, at_once=at_once)
    if isinstance(done, JSONResponse):
        record.write(documents=1, status=done.status_code)
        return done
    (removed,) = (done.result or {})["removed"]
    record.write(documents=1, chunks=removed["chunks"])
    return {"document_id": removed["document_id"], "chunks": removed["chunks"]}


def _changeable(
    parts: Resources, caller: Principal, namespace: str, document_id: str
) -> tuple[dict[str, Any], str | None]:
    """Return the row of a document that the caller may change, and the change token of its upload as it is now."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id, namespace)
    access = Access(row["visibility"], row["org_id"], row["user_id"], tuple(row["tags"] or ()))
    demand_change(caller, namespace, access)
    if row["source"] != UPLOADS:
        return row, None
    try:
        upload = parts.uploads.get(row["namespace"], row["path"])
    except Damaged:
        return row, None
    return row, None if upload is None else upload.etag
