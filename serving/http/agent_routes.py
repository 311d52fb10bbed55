"""Routes of `/api/knowledge`, the dialect of agents and of the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from parquetry.serving.access.visibility import access_for, filters_for
from parquetry.serving.http import agent_models as forms
from parquetry.serving.http.answers import Recorded, milliseconds
from parquetry.serving.http.callers import (
    Namespace,
    Parts,
    PublishedParts,
    ReadCaller,
    SearchCaller,
    WriteCaller,
    namespace_in_body,
)
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.removing import remove_document
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.http.uploading import UploadForm, imported, new_content
from parquetry.serving.http.writes import ACCEPTED, AtOnce, outcome
from parquetry.serving.search.pages import read_page
from parquetry.serving.search.service import SearchRequest
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import fetching, in_thread
from parquetry.serving.service.writing import NewContent, describes, ingest
from parquetry.storage.search.filters import Filters

router = APIRouter(prefix="/api/knowledge", tags=["knowledge"], route_class=JsonRoute)
_NO_DESCRIPTIONS = "images were not described: set model in [llm], and its price if refresh.budget_usd is set"
DocumentId = Annotated[str, Path(max_length=255)]


@router.get("/stats")
def stats(caller: ReadCaller, parts: PublishedParts, namespace: Namespace) -> forms.Stats:
    """Count documents and fragments of a namespace."""
    with parts.follower.reader() as reader:
        found = shown.counts(reader, caller, namespace)
    return forms.Stats(document_count=found.documents, fragment_count=found.chunks, agent_id=namespace)


@router.get("/documents")
def list_documents(
    caller: ReadCaller,
    parts: PublishedParts,
    namespace: Namespace,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> forms.DocumentListing:
    """List documents, oldest first."""
    filters = filters_for(caller, namespace, Filters())
    with parts.follower.reader() as reader:
        page = read_page(parts.settings, reader, filters, limit=limit, offset=offset)
    documents = [forms.DocumentSummary(**summary(row)) for row in page.documents]
    return forms.DocumentListing(documents=documents, total=page.total, limit=limit, offset=offset)


def summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document in a list."""
    return {
        "id": row["document_id"],
        "filename": row["filename"] or row["title"] or "Untitled",
        "content_type": row["media_type"] or "unknown",
        "file_size": row["size"] or 0,
        "created_at": milliseconds(row, "created_at"),
        "fragment_count": row["chunks"] or 0,
        "source": shown.origin_of(row),
        "url": shown.url_of(row),
    }


@router.get("/documents/{document_id}")
def get_document(
    document_id: DocumentId,
    caller: ReadCaller,
    parts: PublishedParts,
    namespace: Namespace,
) -> forms.DocumentDetail:
    """Return a document with its text and metadata."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id, namespace)
        content = shown.text_of(reader, row)
    return forms.DocumentDetail(**summary(row), content=content, metadata=shown.shown_metadata(parts.settings, row))


@router.post(
    "/documents",
    response_model=forms.AddedDocument,
    openapi_extra=UploadForm.openapi(forms.NewDocument),
    responses=ACCEPTED,
)
async def add_document(
    request: Request,
    caller: WriteCaller,
    parts: Parts,
    _: Namespace,
    at_once: AtOnce,
) -> Any:
    """Add a document: JSON with its text, or base64 of other types; or a form with the file itself."""
    form = await UploadForm.read(request, forms.NewDocument)
    namespace = namespace_in_body(parts, caller, request, form.fields.namespace)
    content = await new_content(form, parts, caller)
    asked, possible = form.fields.include_image_descriptions, describes(parts.settings)
    if asked and possible:
        content = replace(content, describe=True)
    answer = await _added(request, caller, parts, namespace, content, at_once)
    if isinstance(answer, JSONResponse) or not asked or possible:
        return answer
    return {**answer, "warnings": [*answer["warnings"], _NO_DESCRIPTIONS]}


@router.post("/documents/url", response_model=forms.AddedUrl, responses=ACCEPTED)
async def add_url(
    request: Request,
    given: forms.NewUrl,
    caller: WriteCaller,
    parts: Parts,
    _: Namespace,
    at_once: AtOnce,
) -> Any:
    """Import a web page, or the captions of a video."""
    namespace = namespace_in_body(parts, caller, request, given.namespace)
    access = access_for(caller, given.visibility, given.user_id, given.org_id, given.shared, given.tags)
    content = await fetching(imported, parts.settings, given.url, given.metadata, access)
    answer = await _added(request, caller, parts, namespace, content, at_once)
    if isinstance(answer, JSONResponse):
        return answer
    return {**answer, "isYouTubeTranscript": content.kind == "youtube"}


async def _added(
    request: Request, caller: WriteCaller, parts: Parts, namespace: str, content: NewContent, at_once: bool
) -> dict[str, Any] | JSONResponse:
    record = Recorded(request, caller, "knowledge.ingest", namespace)
    job = await in_thread(ingest, parts, caller, namespace, [content])
    done = await outcome(parts, job, at_once=at_once)
    if isinstance(done, JSONResponse):
        record.write(documents=1, status=done.status_code)
        return done
    (document,) = (done.result or {})["documents"]
    record.ingested(1, document["chunks"])
    return {
        "ok": True,
        "documentId": document["document_id"],
        "filename": document["filename"],
        "contentType": document["media_type"] or "unknown",
        "fragmentCount": document["chunks"],
        "warnings": [*content.warnings, *document["warnings"]],
    }


@router.get("/fragments/{document_id}")
def get_fragments(
    document_id: DocumentId,
    caller: ReadCaller,
    parts: PublishedParts,
    namespace: Namespace,
) -> forms.Fragments:
    """Return the chunks of a document, by position."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id, namespace)
        chunks = shown.chunks_of(reader, row)
    created = milliseconds(row, "indexed_at")
    found = [
        forms.Fragment(id=each["chunk_id"], text=each["text"], position=each["chunk_index"], created_at=created)
        for each in chunks
    ]
    return forms.Fragments(document_id=document_id, fragments=found, count=len(found))


@router.get("/search")
@takes_turns()
def search(
    request: Request,
    caller: SearchCaller,
    parts: PublishedParts,
    namespace: Namespace,
    q: Annotated[str, Query(min_length=1, max_length=8192)],
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.3,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> forms.SearchAnswer:
    """Return the chunks that answer a question, best first."""
    record = Recorded(request, caller, "knowledge.retrieve", namespace)
    asked = SearchRequest(q, k=limit, min_relevance=threshold, filters=filters_for(caller, namespace, Filters()))
    with parts.follower.reader() as reader:
        hits = reader.search(asked).hits
    record.answered(hits, [q])
    found = [
        forms.Found(
            id=hit.row["chunk_id"],
            text=hit.row["text"],
            similarity=hit.relevance or 0.0,
            document_id=hit.row["document_id"],
            document_title=hit.row["title"] or hit.row["filename"],
            position=hit.row["chunk_index"],
        )
        for hit in hits
    ]
    return forms.SearchAnswer(query=q, threshold=threshold, results=found, count=len(found))


@router.delete("/documents/{document_id}", response_model=forms.Deleted, responses=ACCEPTED)
async def delete_document(
    request: Request,
    document_id: DocumentId,
    caller: WriteCaller,
    parts: PublishedParts,
    namespace: Namespace,
    at_once: AtOnce,
) -> Any:
    """Delete a document, and its bytes if it was uploaded."""
    removed = await remove_document(request, parts, caller, namespace, document_id, at_once=at_once)
    return removed if isinstance(removed, JSONResponse) else {"ok": True, "deletedFragments": removed["chunks"]}
