"""Routes of `/v1/vector_stores`: stores, and searches in them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from parquetry import ids
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import access_for
from parquetry.serving.files.model import VectorStore, new_id, now
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Namespace, Parts, ReadCaller, SearchCaller, WriteCaller
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.openai import forms, objects, shapes
from parquetry.serving.http.openai.errors import ERRORS
from parquetry.serving.http.openai.paths import STORES
from parquetry.serving.http.openai.waiting import removed
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.http.writes import AtOnce
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.attaching import AUTO, NewAttachment, attach
from parquetry.serving.stores.attribute_filters import attribute_filter
from parquetry.serving.stores.listing import (
    STORE_PREFIX,
    ListedStore,
    file_named,
    namespace_totals_of,
    page_of_stores,
    store_named,
    store_to_change,
    store_to_fill,
    with_counts,
)
from parquetry.serving.stores.namespaces import PREFIX, no_such_store
from parquetry.serving.stores.rewriting import rewritten
from parquetry.serving.stores.search import MOST_RESULTS, check_stores, search_stores
from parquetry.serving.stores.upkeep import empty_store

router = APIRouter(prefix=STORES, tags=["vector stores (OpenAI)"], route_class=JsonRoute, responses=ERRORS)
StoreIdPath = Annotated[str, Path(max_length=128)]
Cursor = Annotated[str | None, Query(max_length=128)]
PageLimit = Annotated[int, Query(ge=1, le=100)]
PageToken = Annotated[str | None, Query(max_length=128, description="`next_page` of the page before.")]


def _shape(listed: ListedStore) -> dict[str, Any]:
    if isinstance(listed.store, VectorStore):
        return shapes.store_shape(listed.store, listed.counts, now())
    return shapes.namespace_shape(listed.store)


@router.post("", response_model=objects.OpenAiStore, response_model_exclude_unset=True)
async def create_store(
    caller: WriteCaller, namespace: Namespace, given: forms.NewStore, parts: Parts
) -> dict[str, Any]:
    """Create a vector store; its files are attached by and by."""
    return _shape(await in_thread(_create, parts, caller, namespace, given))


def _create(parts: Resources, caller: Principal, namespace: str, given: forms.NewStore) -> ListedStore:
    size = AUTO if given.chunking_strategy is None else given.chunking_strategy.size
    files = [file_named(parts, caller, file_id) for file_id in dict.fromkeys(given.file_ids)]
    created = now()
    store = VectorStore(
        new_id(STORE_PREFIX, created),
        given.name or "",
        namespace,
        access_for(caller),
        created,
        created,
        None if given.expires_after is None else given.expires_after.days,
        given.metadata or {},
        given.description or "",
    )
    parts.stores.add(store)
    if files:
        attach(parts, store, [NewAttachment(file, {}, size) for file in files])
    return with_counts(parts, store)


@router.get("", response_model=objects.OpenAiList[objects.OpenAiStore], response_model_exclude_unset=True)
def list_stores(
    caller: ReadCaller,
    parts: Parts,
    limit: PageLimit = 20,
    order: forms.Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
) -> dict[str, Any]:
    """List vector stores; each namespace with documents is one, too."""
    found, has_more = page_of_stores(parts, caller, limit, newest_first=order == "desc", after=after, before=before)
    return shapes.list_shape([_shape(each) for each in found], has_more=has_more)


@router.get("/{vector_store_id}", response_model=objects.OpenAiStore, response_model_exclude_unset=True)
def get_store(caller: ReadCaller, vector_store_id: StoreIdPath, parts: Parts) -> dict[str, Any]:
    """Return a vector store."""
    if vector_store_id.startswith(PREFIX):
        totals = namespace_totals_of(parts, caller, vector_store_id)
        if totals is None:
            raise no_such_store(vector_store_id)
        return shapes.namespace_shape(totals)
    return _shape(with_counts(parts, store_named(parts, caller, vector_store_id)))


@router.post("/{vector_store_id}", response_model=objects.OpenAiStore, response_model_exclude_unset=True)
def modify_store(
    caller: WriteCaller, vector_store_id: StoreIdPath, given: forms.StoreChange, parts: Parts
) -> dict[str, Any]:
    """Change name, expiry or metadata of a vector store."""
    store = store_to_fill(parts, caller, vector_store_id)
    columns: dict[str, Any] = {}
    if "name" in given.model_fields_set:
        columns["name"] = given.name or ""
    if "expires_after" in given.model_fields_set:
        columns["expires_days"] = None if given.expires_after is None else given.expires_after.days
    if "metadata" in given.model_fields_set:
        columns["metadata"] = given.metadata or {}
    parts.stores.change(store.id, **columns)
    return _shape(with_counts(parts, store_named(parts, caller, store.id)))


@router.delete("/{vector_store_id}", response_model=objects.DeletedStore, response_model_exclude_unset=True)
async def delete_store(
    caller: WriteCaller, vector_store_id: StoreIdPath, parts: Parts, at_once: AtOnce
) -> dict[str, Any]:
    """Delete a vector store; its files stay."""
    store = await in_thread(_deletable, parts, caller, vector_store_id)
    await in_thread(parts.stores.mark_deleted, store.id)
    if not await in_thread(empty_store, parts, store):
        jobs = [each.job for each in await in_thread(parts.stores.in_work, [store.id])]
        await removed(parts, jobs, at_once=at_once)
        if await in_thread(_is_empty, parts, store):
            await in_thread(parts.stores.remove, store.id)
    else:
        await in_thread(parts.stores.remove, store.id)
    return shapes.deleted_shape(store.id, "vector_store.deleted")


def _deletable(parts: Resources, caller: Principal, store_id: str) -> VectorStore:
    return store_to_change(parts, caller, store_id, deleted=True)


def _is_empty(parts: Resources, store: VectorStore) -> bool:
    with_counts(parts, store)
    return empty_store(parts, store)


@router.post("/{vector_store_id}/search", response_model=objects.SearchResultsPage, response_model_exclude_unset=True)
@takes_turns(
    waits=lambda values: values["given"].rewrite_query or values["parts"].settings.search.rerank is not None,
    long=lambda values: len(values["given"].queries) > 1,
)
def search_store(
    request: Request,
    caller: SearchCaller,
    vector_store_id: StoreIdPath,
    given: forms.StoreSearch,
    parts: Parts,
    page: PageToken = None,
) -> dict[str, Any]:
    """Search the files of a vector store."""
    record = Recorded(request, caller, "knowledge.retrieve", None)
    condition = None
    if given.filters is not None:
        condition = attribute_filter(given.filters, parts.settings.metadata_denylists.knowledge)
    ranking = given.ranking_options or forms.RankingOptions()
    offset = _offset(page, vector_store_id, given)
    if given.rewrite_query:
        check_stores(parts, caller, [vector_store_id])
    queries = _queries(parts, given, record)
    end = min(offset + given.max_num_results, MOST_RESULTS)
    found = search_stores(
        parts,
        caller,
        [vector_store_id],
        queries,
        filters=condition,
        limit=min(end + 1, MOST_RESULTS),
        score_threshold=ranking.score_threshold,
        rerank=False if ranking.ranker == "none" else None,
    )
    shown = found[offset:end]
    record.answered([each.hit for each in shown], queries)
    following = _token(end, vector_store_id, given) if len(found) > end else None
    return shapes.results_shape(queries, shown, following)


def _queries(parts: Resources, given: forms.StoreSearch, record: Recorded) -> list[str]:
    if any(not query.strip() for query in given.queries):
        raise Problem(400, "invalid-request", "query: an empty text finds nothing", param="query")
    if not given.rewrite_query:
        return given.queries
    if not parts.settings.llm.model:
        problem = "rewrite_query: no language model is configured; set model in [llm], or leave it out"
        raise Problem(400, "no-language-model", problem, param="rewrite_query")
    queries, read, written = rewritten(parts.settings.llm, given.queries)
    record.spent(read, written)
    return queries


def _token(offset: int, store_id: str, given: forms.StoreSearch) -> str:
    return base64.urlsafe_b64encode(f"{offset}-{_mark(store_id, given)}".encode()).decode().rstrip("=")


def _offset(token: str | None, store_id: str, given: forms.StoreSearch) -> int:
    """Return the place at which a page begins."""
    if token is None:
        return 0
    try:
        told = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, ValueError):
        told = ""
    place, _, mark = told.partition("-")
    if not (place.isascii() and place.isdigit()) or len(place) > 4 or mark != _mark(store_id, given):
        problem = "page: this is not the next_page of the same search; pass on the one that came with the page before"
        raise Problem(400, "bad-cursor", problem, param="page")
    return int(place)


def _mark(store_id: str, given: forms.StoreSearch) -> str:
    """Return the mark of a search, whose pages belong together."""
    return ids.settings_hash({"store": store_id, "search": given.model_dump()})
