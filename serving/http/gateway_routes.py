"""Routes of `/api/v1/knowledge`, the dialect of gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from parquetry.serving.access.visibility import access_for, filters_for
from parquetry.serving.http import gateway_models as forms
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Parts, PathNamespace, PublishedParts, ReadCaller, SearchCaller, WriteCaller
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.removing import remove_document
from parquetry.serving.http.retrieving import citations_of, retrieve_chunks
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.http.uploading import check_size
from parquetry.serving.http.writes import ACCEPTED, AtOnce, outcome
from parquetry.serving.search.pages import read_page
from parquetry.serving.search.service import SearchRequest, SearchResponse
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import asking_model, in_thread
from parquetry.serving.service.request_filters import filters_of
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.words import NoLanguageModel, answer_in_words
from parquetry.serving.service.writing import NewContent, ingest
from parquetry.storage.search.filters import Filters

router = APIRouter(prefix="/api/v1/knowledge", tags=["knowledge (gateway)"], route_class=JsonRoute)
DocumentId = Annotated[str, Path(max_length=255)]


@router.get("/namespaces")
def list_namespaces(caller: SearchCaller, parts: PublishedParts) -> forms.Namespaces:
    """List the namespaces that the caller may see."""
    with parts.follower.reader() as reader:
        return forms.Namespaces(namespaces=shown.namespaces(reader, caller))


@router.post("/{namespace}/documents", status_code=201, response_model=forms.Ingested, responses=ACCEPTED)
async def add_documents(
    request: Request,
    given: forms.NewTexts,
    caller: WriteCaller,
    namespace: PathNamespace,
    parts: Parts,
    at_once: AtOnce,
) -> Any:
    """Add documents; the answer comes when they can be searched."""
    contents = [_content(caller, each, parts.settings.serve.max_document_bytes) for each in given.documents]
    _check_names(contents)
    record = Recorded(request, caller, "knowledge.ingest", namespace)
    job = await in_thread(ingest, parts, caller, namespace, contents)
    done = await outcome(parts, job, at_once=at_once)
    if isinstance(done, JSONResponse):
        record.write(documents=len(contents), status=done.status_code)
        return done
    documents = (done.result or {})["documents"]
    record.ingested(len(documents), sum(each["chunks"] for each in documents))
    remarks = [remark for content in contents for remark in content.warnings]
    remarks += [remark for each in documents for remark in each["warnings"]]
    return {
        "document_ids": [each["document_id"] for each in documents],
        "ingested": len(documents),
        "warnings": remarks,
    }


def _check_names(contents: Sequence[NewContent]) -> None:
    """Refuse several documents of one name and owner: each would replace the one before it, and only the last be there.

    Raises:
        Problem: there are such.
    """
    known: set[tuple[str | None, str | None, str]] = set()
    for number, each in enumerate(contents):
        if each.name is None:
            continue
        key = (each.access.user_id, each.access.org_id, each.name)
        if key in known:
            what = (
                f"body.documents.{number}.source: another document of this request has this source; give each its own"
            )
            raise Problem(422, "invalid-request", what)
        known.add(key)


def _content(caller: WriteCaller, given: forms.NewText, most: int) -> NewContent:
    access = access_for(caller, given.visibility, given.user_id, given.org_id, given.shared, given.tags)
    content = given.text.encode("utf-8", "surrogatepass")
    metadata = given.metadata if given.source is None else {**given.metadata, "source": given.source}
    filename = given.source or "text.md"
    check_size(content, filename, most)
    return NewContent(
        content, filename, access, name=given.source, content_type="text/markdown", metadata=metadata, kind="text"
    )


@router.get("/{namespace}/documents")
def list_documents(
    caller: ReadCaller,
    namespace: PathNamespace,
    parts: PublishedParts,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    page: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
) -> forms.DocumentItems:
    """List documents, oldest first; pages read by `next` are of one version to their end."""
    filters = filters_for(caller, namespace, Filters())
    with parts.follower.reader() as reader:
        found = read_page(parts.settings, reader, filters, limit=limit, offset=offset, token=page)
    return forms.DocumentItems(
        documents=[_item(parts, row) for row in found.documents],
        total=found.total,
        limit=found.limit,
        offset=found.offset,
        version=found.version,
        next=found.next,
    )


def _item(parts: Parts, row: Mapping[str, Any]) -> forms.DocumentItem:
    return forms.DocumentItem(
        document_id=row["document_id"],
        filename=row["filename"],
        title=row["title"],
        source=shown.origin_of(row),
        uri=row["uri"],
        media_type=row["media_type"],
        size=row["size"] or 0,
        chunks=row["chunks"] or 0,
        status=row["status"],
        error=row["error"],
        visibility=row["visibility"],
        tags=list(row["tags"] or ()),
        metadata=shown.shown_metadata(parts.settings, row),
        uploaded_by=row["uploaded_by"],
        created_at=row["created_at"],
        indexed_at=row["indexed_at"],
    )


@router.get("/{namespace}/documents/{document_id}")
def get_document(
    caller: ReadCaller, namespace: PathNamespace, document_id: DocumentId, parts: PublishedParts
) -> forms.DocumentText:
    """Return a document with its text."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id, namespace)
        text = shown.text_of(reader, row)
    return forms.DocumentText(**_item(parts, row).model_dump(), text=text)


@router.get("/{namespace}/documents/{document_id}/chunks")
def get_chunks(
    caller: ReadCaller, namespace: PathNamespace, document_id: DocumentId, parts: PublishedParts
) -> forms.ChunkList:
    """Return the chunks of a document, in order."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id, namespace)
        found = shown.chunks_of(reader, row)
    chunks = [
        forms.ChunkItem(
            chunk_id=each["chunk_id"],
            chunk_index=each["chunk_index"],
            text=each["text"],
            span=[each["start"], each["end"]],
            page=each["page"],
            headings=list(each["headings"] or ()),
            tokens=each["tokens"],
        )
        for each in found
    ]
    return forms.ChunkList(document_id=document_id, chunks=chunks)


@router.delete("/{namespace}/documents/{document_id}", response_model=forms.RemovedDocument, responses=ACCEPTED)
async def delete_document(
    request: Request,
    document_id: DocumentId,
    caller: WriteCaller,
    namespace: PathNamespace,
    parts: PublishedParts,
    at_once: AtOnce,
) -> Any:
    """Remove a document, and its bytes if it was uploaded."""
    removed = await remove_document(request, parts, caller, namespace, document_id, at_once=at_once)
    if isinstance(removed, JSONResponse):
        return removed
    return {"document_id": removed["document_id"], "deleted_chunks": removed["chunks"]}


@router.post("/{namespace}/retrieve", response_model=forms.Retrieved, response_model_exclude_unset=True)
@takes_turns(
    waits=lambda values: values["asked"].rerank,
    long=lambda values: values["asked"].queries is not None or bool(values["asked"].explain),
)
def retrieve(
    request: Request, caller: SearchCaller, namespace: PathNamespace, asked: forms.Retrieve, parts: PublishedParts
) -> Any:
    """Return the chunks that answer a question, best first."""
    record = Recorded(request, caller, "knowledge.retrieve", namespace)
    answer, hits = retrieve_chunks(parts, caller, namespace, asked)
    record.answered(hits, [asked.query] if asked.query else asked.queries or ["(vector)"])
    return answer


@router.post("/{namespace}/query")
async def query(
    request: Request, caller: SearchCaller, namespace: PathNamespace, asked: forms.Ask, parts: PublishedParts
) -> forms.WordsAnswer:
    """Have the language model answer a question from what is found."""
    record = Recorded(request, caller, "knowledge.query", namespace)
    try:
        filters = filters_for(caller, namespace, filters_of(asked.filters, denylists=parts.settings.metadata_denylists))
        search = SearchRequest(asked.question, mode=asked.mode, k=asked.top_k, filters=filters)
        found = await run_in_threadpool(_searched, parts, search)
        answer: forms.WordsAnswer = await asking_model(_in_words, parts, asked.question, found, record)
    except Exception as error:
        record.failed(error, [asked.question])
        raise
    return answer


def _searched(parts: Resources, search: SearchRequest) -> SearchResponse:
    with parts.follower.reader() as reader:
        return reader.search(search)


def _in_words(parts: Resources, question: str, found: SearchResponse, record: Recorded) -> forms.WordsAnswer:
    try:
        words = answer_in_words(parts.settings.llm, question, found.hits)
    except NoLanguageModel as error:
        raise Problem(501, "no-language-model", str(error)) from error
    record.answered(found.hits, [question], status=200)
    record.spent(words.input_tokens, words.output_tokens)
    citations = [forms.CitationItem(**each) for each in citations_of(parts.settings, question, found.hits)]
    return forms.WordsAnswer(answer=words.text.strip(), citations=citations, version=found.version)
