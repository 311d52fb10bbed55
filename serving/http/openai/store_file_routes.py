"""Routes of the files of vector stores, and of batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.files.model import FileBatch, StoreFile, VectorStore, new_id, now
from parquetry.serving.http.callers import Parts, ReadCaller, WriteCaller
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.openai import forms, objects, shapes
from parquetry.serving.http.openai.errors import ERRORS
from parquetry.serving.http.openai.paths import STORES
from parquetry.serving.http.openai.store_routes import Cursor, PageLimit, StoreIdPath
from parquetry.serving.http.openai.waiting import after_jobs, removed
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.writes import AtOnce
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.documents import text_of as text_of_row
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores import attaching
from parquetry.serving.stores.attaching import AUTO, NewAttachment, document_id_of_attachment, follow
from parquetry.serving.stores.listing import (
    bounds_of,
    file_named,
    store_named,
    store_to_change,
    store_to_fill,
    text_of,
)
from parquetry.serving.stores.namespaces import (
    PREFIX,
    document_of,
    namespace_named,
    no_such_file,
    no_such_store,
    page_of,
    published,
)

router = APIRouter(
    prefix=f"{STORES}/{{vector_store_id}}",
    tags=["vector stores (OpenAI)"],
    route_class=JsonRoute,
    responses=ERRORS,
)
FileIdPath = Annotated[str, Path(max_length=128)]
BatchIdPath = Annotated[str, Path(max_length=128)]
BATCH_PREFIX = "vsfb_"
CONTENT_CHARACTERS = 4_000_000
"""characters of a page of the text of a file"""
_POLL = "openai-poll-after-ms"
"""header by which OpenAI's clients know how soon to ask again"""
_POLL_MS = "250"


@router.post("/files", response_model=objects.OpenAiStoreFile, response_model_exclude_unset=True)
async def attach_file(
    response: Response,
    caller: WriteCaller,
    vector_store_id: StoreIdPath,
    given: forms.NewStoreFile,
    parts: Parts,
    at_once: AtOnce,
) -> dict[str, Any]:
    """Attach a file to a vector store; the answer comes when it can be found, or failed."""
    (attached,) = await in_thread(_attach, parts, caller, vector_store_id, [given], None)
    await after_jobs(parts, [attached.job], at_once=at_once)
    shape: dict[str, Any] = await in_thread(_file, response, parts, caller, vector_store_id, attached.file_id)
    return shape


def _attach(
    parts: Resources, caller: Principal, store_id: str, given: Sequence[forms.NewStoreFile], batch_id: str | None
) -> Sequence[StoreFile]:
    store = store_to_fill(parts, caller, store_id)
    wanted = {each.file_id: each for each in given}
    files = [
        NewAttachment(
            file_named(parts, caller, file_id),
            each.attributes or {},
            AUTO if each.chunking_strategy is None else each.chunking_strategy.size,
        )
        for file_id, each in wanted.items()
    ]
    parts.stores.touch([store.id])
    return attaching.attach(parts, store, files, batch_id)


def _file(response: Response, parts: Resources, caller: Principal, store_id: str, file_id: str) -> dict[str, Any]:
    """Return a file of a store as it is now."""
    store = store_named(parts, caller, store_id)
    attachment = _attachment(parts, store, file_id)
    if attachment.status == "in_progress":
        response.headers[_POLL] = _POLL_MS
    return shapes.attachment_shape(attachment, parts.settings.metadata_denylists.knowledge)


def _attachment(parts: Resources, store: VectorStore, file_id: str) -> StoreFile:
    found = parts.stores.attachment(store.id, file_id)
    if found is not None:
        follow(parts, store, [found])
        found = parts.stores.attachment(store.id, file_id)
    if found is None:
        raise no_such_file(file_id)
    return found


@router.get("/files", response_model=objects.OpenAiList[objects.OpenAiStoreFile], response_model_exclude_unset=True)
def list_store_files(
    caller: ReadCaller,
    vector_store_id: StoreIdPath,
    parts: Parts,
    limit: PageLimit = 20,
    order: forms.Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
    filter: Annotated[forms.StatusFilter | None, Query()] = None,
) -> dict[str, Any]:
    """List the files of a vector store in order of their attachment."""
    newest_first = order == "desc"
    if not vector_store_id.startswith(PREFIX):
        store = store_named(parts, caller, vector_store_id)
        return _page(parts, store, limit, newest_first, filter, after, before, None)
    with published(parts) as reader:
        namespace = None if reader is None else namespace_named(reader, caller, vector_store_id)
        if reader is None or namespace is None:
            raise no_such_store(vector_store_id)
        rows = page_of(
            reader,
            caller,
            namespace,
            limit + 1,
            newest_first=newest_first,
            status=filter,
            after=after,
            before=before,
        )
    shown, has_more = _cut(rows, limit, backwards=before is not None)
    denied = parts.settings.metadata_denylists.knowledge
    return shapes.list_shape(
        [shapes.store_document_shape(row, denied, row["bytes"]) for row in shown], has_more=has_more
    )


def _page(
    parts: Resources,
    store: VectorStore,
    limit: int,
    newest_first: bool,
    status: forms.StatusFilter | None,
    after: str | None,
    before: str | None,
    batch_id: str | None,
) -> dict[str, Any]:
    follow(parts, store, parts.stores.in_work([store.id]))
    bounds = bounds_of(parts, store, after, before)
    found = parts.stores.page(
        store.id, limit + 1, newest_first=newest_first, status=status, batch_id=batch_id, **bounds
    )
    shown, has_more = _cut(found, limit, backwards=before is not None)
    denied = parts.settings.metadata_denylists.knowledge
    return shapes.list_shape([shapes.attachment_shape(each, denied) for each in shown], has_more=has_more)


def _cut(found: Sequence[Any], limit: int, *, backwards: bool) -> tuple[Sequence[Any], bool]:
    """Return a page without the one that shows that there are more: of a page read backwards, it is the first."""
    return (found[-limit:] if backwards else found[:limit]), len(found) > limit


@router.get("/files/{file_id}", response_model=objects.OpenAiStoreFile, response_model_exclude_unset=True)
def get_store_file(
    response: Response, caller: ReadCaller, vector_store_id: StoreIdPath, file_id: FileIdPath, parts: Parts
) -> dict[str, Any]:
    """Return a file of a vector store."""
    if not vector_store_id.startswith(PREFIX):
        return _file(response, parts, caller, vector_store_id, file_id)
    row, usage = _document(parts, caller, vector_store_id, file_id)[:2]
    return shapes.store_document_shape(row, parts.settings.metadata_denylists.knowledge, usage)


def _document(parts: Resources, caller: Principal, store_id: str, file_id: str) -> tuple[dict[str, Any], int, str]:
    """Return the row of a document of a namespace, its size in the index, and its text."""
    with published(parts) as reader:
        namespace = None if reader is None else namespace_named(reader, caller, store_id)
        if reader is None or namespace is None:
            raise no_such_store(store_id)
        row = document_of(reader, caller, file_id, namespace)
        return row, attaching.bytes_of(reader, row["document_id"]), text_of_row(reader, row)


@router.post("/files/{file_id}", response_model=objects.OpenAiStoreFile, response_model_exclude_unset=True)
async def change_store_file(
    response: Response,
    caller: WriteCaller,
    vector_store_id: StoreIdPath,
    file_id: FileIdPath,
    given: forms.AttributeChange,
    parts: Parts,
    at_once: AtOnce,
) -> dict[str, Any]:
    """Replace the attributes of a file in a vector store."""
    changed = await in_thread(_change, parts, caller, vector_store_id, file_id, given.attributes or {})
    await after_jobs(parts, [changed.job], at_once=at_once)
    shape: dict[str, Any] = await in_thread(_file, response, parts, caller, vector_store_id, file_id)
    return shape


def _change(parts: Resources, caller: Principal, store_id: str, file_id: str, attributes: dict[str, Any]) -> StoreFile:
    store = store_to_fill(parts, caller, store_id)
    return attaching.change_attributes(parts, store, _attachment(parts, store, file_id), attributes)


@router.delete("/files/{file_id}", response_model=objects.DeletedStoreFile, response_model_exclude_unset=True)
async def detach_file(
    caller: WriteCaller, vector_store_id: StoreIdPath, file_id: FileIdPath, parts: Parts, at_once: AtOnce
) -> dict[str, Any]:
    """Remove a file from a vector store; the file itself stays."""
    store, jobs = await in_thread(_detach, parts, caller, vector_store_id, file_id)
    await removed(parts, jobs, at_once=at_once)
    await in_thread(_follow_removal, parts, store)
    return shapes.deleted_shape(file_id, "vector_store.file.deleted")


def _detach(parts: Resources, caller: Principal, store_id: str, file_id: str) -> tuple[VectorStore, Sequence[str]]:
    store = store_to_change(parts, caller, store_id)
    attachment = parts.stores.attachment(store.id, file_id, removing=True)
    if attachment is None:
        raise no_such_file(file_id)
    return store, attaching.detach(parts, store, [attachment])


def _follow_removal(parts: Resources, store: VectorStore) -> None:
    follow(parts, store, parts.stores.in_work([store.id]))


@router.get("/files/{file_id}/content", response_model=objects.FileContentPage, response_model_exclude_unset=True)
def get_store_file_content(
    caller: ReadCaller,
    vector_store_id: StoreIdPath,
    file_id: FileIdPath,
    parts: Parts,
    page: Annotated[str | None, Query(max_length=20, description="`next_page` of the page before.")] = None,
) -> dict[str, Any]:
    """Return the text of a file in a vector store."""
    start = 0 if page is None else int(page) if page.isascii() and page.isdigit() else -1
    if start < 0:
        raise Problem(400, "bad-cursor", "page: pass on the next_page of the page before", param="page")
    text = _text(parts, caller, vector_store_id, file_id)
    end = start + CONTENT_CHARACTERS
    return shapes.content_shape([text[start:end]] if text[start:end] else [], str(end) if end < len(text) else None)


def _text(parts: Resources, caller: Principal, store_id: str, file_id: str) -> str:
    if store_id.startswith(PREFIX):
        return _document(parts, caller, store_id, file_id)[2]
    store = store_named(parts, caller, store_id)
    attachment = _attachment(parts, store, file_id)
    if attachment.status != "completed":
        status = 409 if attachment.status == "in_progress" else 400
        raise Problem(status, "file-not-ready", f"the file is {attachment.status}: it has no text", param="file_id")
    return text_of(parts, caller, document_id_of_attachment(store, attachment), store.namespace)


@router.post("/file_batches", response_model=objects.OpenAiFileBatch, response_model_exclude_unset=True)
async def create_batch(
    response: Response, caller: WriteCaller, vector_store_id: StoreIdPath, given: forms.NewBatch, parts: Parts
) -> dict[str, Any]:
    """Attach files together; the answer comes at once."""
    batch_id = new_id(BATCH_PREFIX, now())
    await in_thread(_attach, parts, caller, vector_store_id, given.each, batch_id)
    shape: dict[str, Any] = await in_thread(_batch_shape, response, parts, caller, vector_store_id, batch_id)
    return shape


def _batch(parts: Resources, store: VectorStore, batch_id: str) -> FileBatch:
    batch = parts.stores.batch(store.id, batch_id)
    if batch is None:
        raise NotVisible("no-such-batch", f"no file batch {batch_id[:80]!r}")
    return batch


def _batch_shape(
    response: Response, parts: Resources, caller: Principal, store_id: str, batch_id: str
) -> dict[str, Any]:
    store = store_named(parts, caller, store_id)
    batch = _batch(parts, store, batch_id)
    follow(parts, store, parts.stores.in_work([store.id]))
    shape = shapes.batch_shape(batch, parts.stores.batch_counts(batch.id))
    if shape["status"] == "in_progress":
        response.headers[_POLL] = _POLL_MS
    return shape


@router.get("/file_batches/{batch_id}", response_model=objects.OpenAiFileBatch, response_model_exclude_unset=True)
def get_batch(
    response: Response, caller: ReadCaller, vector_store_id: StoreIdPath, batch_id: BatchIdPath, parts: Parts
) -> dict[str, Any]:
    """Return a batch of files."""
    return _batch_shape(response, parts, caller, vector_store_id, batch_id)


@router.post(
    "/file_batches/{batch_id}/cancel", response_model=objects.OpenAiFileBatch, response_model_exclude_unset=True
)
def cancel_batch(
    response: Response, caller: WriteCaller, vector_store_id: StoreIdPath, batch_id: BatchIdPath, parts: Parts
) -> dict[str, Any]:
    """Cancel those files of a batch that are not done."""
    store = store_to_change(parts, caller, vector_store_id)
    batch = _batch(parts, store, batch_id)
    follow(parts, store, parts.stores.in_work([store.id]))
    attaching.cancel(parts, store, batch.id)
    return _batch_shape(response, parts, caller, vector_store_id, batch_id)


@router.get(
    "/file_batches/{batch_id}/files",
    response_model=objects.OpenAiList[objects.OpenAiStoreFile],
    response_model_exclude_unset=True,
)
def list_batch_files(
    caller: ReadCaller,
    vector_store_id: StoreIdPath,
    batch_id: BatchIdPath,
    parts: Parts,
    limit: PageLimit = 20,
    order: forms.Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
    filter: Annotated[forms.StatusFilter | None, Query()] = None,
) -> dict[str, Any]:
    """List the files of a batch."""
    store = store_named(parts, caller, vector_store_id)
    batch = _batch(parts, store, batch_id)
    return _page(parts, store, limit, order == "desc", filter, after, before, batch.id)
