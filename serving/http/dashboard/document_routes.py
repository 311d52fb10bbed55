"""Pages of documents: their list, one of them with its chunks, and its removal."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import demand_change, filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import PublishedParts, ReadCaller, WriteCaller
from parquetry.serving.http.dashboard.forms import CheckedForm
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import ADD, DOCUMENTS
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.removing import remove_document
from parquetry.serving.http.uploading import imported
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import fetching, in_thread
from parquetry.serving.service.document_pages import chunk_on_pages
from parquetry.serving.service.drawings import can_be_drawn
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.selecting import access_of, may_change, undo_until, undoable
from parquetry.serving.service.version_cache import of_version
from parquetry.serving.service.writing import NewContent, ingest
from parquetry.serving.web.documents import CHUNKS_SHOWN, drawn_pages, item_of, segments, text_of_chunks
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.storage.search.document_browsing import (
    ORDERS,
    STATUSES,
    Browsing,
    Order,
    browse,
    count_browsed,
    facets,
)
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False)
PAGE = 50
"""documents of a page"""
DocumentId = Annotated[str, Path(max_length=255)]
Name = Annotated[str, Query(max_length=1024)]
_NOTICES = {
    "deleted": "Deleted. You can undo this for an hour.",
    "deleting": "Being deleted: what was selected leaves this list when that is done.",
    "restored": "What was deleted is back.",
    "restoring": "What was deleted comes back as soon as it is read.",
    "reading": "Being read again: the list shows what became of it.",
    "tagged": "The tags were changed.",
    "tagging": "The tags are being changed.",
    "untouched": "Nothing had to be changed.",
    "failed": "Not everything could be done; the log of the service says why.",
}


@router.get(DOCUMENTS)
def list_documents(
    request: Request,
    caller: ReadCaller,
    parts: PublishedParts,
    q: Name = "",
    status: Name = "",
    namespace: Name = "",
    source: Name = "",
    media_type: Annotated[str, Query(max_length=1024, alias="type")] = "",
    sort: Name = "-added",
    number: Annotated[int, Query(alias="page", ge=1, le=20_000_000)] = 1,
    notice: Name = "",
) -> Response:
    """Show a page of the documents."""
    order: Order = next((each for each in ORDERS if each == sort.removeprefix("-")), "added")
    known = next((each for each in STATUSES if each == status), None)
    asked = Filters(namespaces=(namespace,) if namespace else (), source=source or None, media_type=media_type or None)
    browsing = Browsing(
        filters_for(caller, None, asked), q.strip() or None, known, order, descending=sort.startswith("-")
    )
    with parts.follower.reader() as reader, closing(reader.index.session()) as session:
        everything, any_order = filters_for(caller, None, Filters()), replace(browsing, order="added", descending=True)
        found: list[dict[str, Any]] | None = None

        def counted() -> int:
            nonlocal found
            if number > 1:
                return count_browsed(session, browsing)
            # The first page and the number of all in one pass: names are searched as one types.
            found, matching = browse(session, browsing, PAGE, 0)
            return matching

        total = of_version(reader, any_order, counted)
        if found is None:
            found, _ = browse(session, browsing, PAGE, (number - 1) * PAGE, total)
        choices = of_version(reader, ("facets", everything), lambda: facets(session, everything))
    writes = caller.may("write") and not parts.settings.serve.read_only
    kept = {"q": q.strip(), "status": known or "", "namespace": namespace, "source": source, "type": media_type}

    def link(**changed: Any) -> str:
        values = {**kept, "sort": sort, "page": number, **changed}
        return f"{DOCUMENTS}?{urlencode({name: value for name, value in values.items() if value})}"

    return page(
        request,
        "documents.html",
        documents=[item_of(row) for row in found],
        total=total,
        first=(number - 1) * PAGE + 1,
        number=number,
        pages=max(1, -(-total // PAGE)),
        choices=choices,
        asked=kept,
        order=order,
        descending=browsing.descending,
        link=link,
        notice=_NOTICES.get(notice, ""),
        removals=[(each, undo_until(each)) for each in undoable(parts, caller)] if writes else [],
    )


@router.get(f"{DOCUMENTS}/{{document_id}}")
def show_document(
    request: Request,
    document_id: DocumentId,
    caller: ReadCaller,
    parts: PublishedParts,
    chunk: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    start: Annotated[int, Query(alias="from", ge=0, le=2**31)] = 0,
) -> Response:
    """Show a document: what is known of it, and its text with the spans of its chunks."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id)
        chunks = shown.chunks_of(reader, row)
        first = (start if chunk is None else chunk) // CHUNKS_SHOWN * CHUNKS_SHOWN
        visible = chunks[first : first + CHUNKS_SHOWN]
        text = text_of_chunks(visible)
        if text is None:
            text = shown.text_of(reader, row)
        drawn = None
        if can_be_drawn(parts.settings, row):
            pages = () if chunk is None else tuple(chunk_on_pages(reader, row, chunk))
            drawn = drawn_pages(visible, chunk, pages)
    return page(
        request,
        "document.html",
        document=item_of(row),
        row=row,
        metadata=shown.shown_metadata(parts.settings, row),
        chunks=visible,
        segments=segments(text, visible, chunk),
        first=first,
        following=first + CHUNKS_SHOWN if first + CHUNKS_SHOWN < len(chunks) else None,
        before=max(0, first - CHUNKS_SHOWN) if first else None,
        total=len(chunks),
        characters=row["characters"],
        may_delete=_is_changeable(parts, caller, row),
        drawn=drawn,
    )


def _is_changeable(parts: Resources, caller: Principal, row: dict[str, Any]) -> bool:
    return not parts.settings.serve.read_only and may_change(caller, row)


@router.get(f"{DOCUMENTS}/{{document_id}}/delete")
def confirm_deletion(request: Request, document_id: DocumentId, caller: WriteCaller, parts: PublishedParts) -> Response:
    """Ask before a document is deleted."""
    row = _row(parts, caller, document_id)
    return page(request, "delete.html", document=item_of(row), uploaded=row["source"] == UPLOADS)


@router.post(f"{DOCUMENTS}/{{document_id}}/delete")
async def delete_document(
    request: Request, document_id: DocumentId, caller: WriteCaller, parts: PublishedParts, _: CheckedForm
) -> Response:
    """Delete a document, and its bytes if it was uploaded."""
    row = await in_thread(_row, parts, caller, document_id)
    done = await remove_document(request, parts, caller, row["namespace"], document_id, at_once=False, undo=True)
    return redirect(f"{DOCUMENTS}?notice={'deleting' if isinstance(done, JSONResponse) else 'deleted'}")


@router.post(f"{DOCUMENTS}/{{document_id}}/sync")
async def fetch_again(
    request: Request, document_id: DocumentId, caller: WriteCaller, parts: PublishedParts, _: CheckedForm
) -> Response:
    """Fetch an imported page or video again, and publish it as it is now."""
    row = await in_thread(_row, parts, caller, document_id)
    access, url = access_of(row), shown.url_of(row)
    demand_change(caller, row["namespace"], access)
    if url is None:
        raise Problem(422, "not-imported", "only what was imported by its address can be fetched again")
    record = Recorded(request, caller, "knowledge.ingest", row["namespace"])
    upload: Upload | None = await in_thread(parts.uploads.get, row["namespace"], row["path"])
    found: NewContent = await fetching(imported, parts.settings, url, {} if upload is None else upload.metadata, access)
    same = replace(found, path=row["path"])
    job = await in_thread(partial(ingest, can_be_withdrawn=True), parts, caller, row["namespace"], [same])
    record.write(documents=1, status=202)
    return redirect(f"{ADD}/jobs/{job.id}")


def _row(parts: Resources, caller: Principal, document_id: str) -> dict[str, Any]:
    with parts.follower.reader() as reader:
        return shown.document(reader, caller, document_id)
