"""The route of Dify's external knowledge API."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from parquetry.serving.access.principals import Principal, no_such_namespace
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import Parts, SearchCaller, namespace_of
from parquetry.serving.http.dify import models as forms
from parquetry.serving.http.dify.conditions import condition_of
from parquetry.serving.http.json_bodies import JsonRoute
from parquetry.serving.http.turns import takes_turns
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service import documents as shown
from parquetry.settings.sections import Settings
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit

_ERROR: dict[int | str, dict[str, Any]] = {
    status: {"description": "Error", "model": forms.DifyError} for status in ("4XX", "5XX")
}
router = APIRouter(tags=["Dify"], route_class=JsonRoute)


@router.post("/retrieval", responses=_ERROR)
@takes_turns(waits=lambda values: values["parts"].settings.search.rerank is not None)
def retrieval(request: Request, caller: SearchCaller, asked: forms.Retrieval, parts: Parts) -> forms.DifyRecords:
    """Return the records that answer a question, best first, in Dify's form."""
    settings = parts.settings
    namespace = namespace_of(parts, caller, asked.knowledge_id)
    record = Recorded(request, caller, "knowledge.retrieve", namespace)
    condition = condition_of(asked.metadata_condition, settings.metadata_denylists.knowledge)
    search = SearchRequest(
        asked.query,
        k=asked.retrieval_setting.top_k,
        filters=filters_for(caller, namespace, Filters(attributes=condition)),
        # Dify cannot ask for the second stage: with a reranker, it is the operator's choice.
        look=Reranking(rerank=settings.search.rerank is not None),
        min_relevance=asked.retrieval_setting.score_threshold,
    )
    with parts.follower.reader() as reader:
        hits = reader.search(search).hits
        if not hits:
            _check_exists(reader, caller, namespace, settings)
    record.answered(hits, [asked.query])
    return forms.DifyRecords(records=[_record(settings, hit) for hit in hits])


def _check_exists(reader: Reader, caller: Principal, namespace: str, settings: Settings) -> None:
    """Check that a namespace without an answer exists for the caller; the corpus's own always does.

    Raises:
        NotVisible: it does not.
    """
    if namespace != settings.corpus.namespace and namespace not in shown.namespaces(reader, caller):
        raise no_such_namespace(namespace)


def _record(settings: Settings, hit: Hit) -> forms.DifyRecord:
    row = hit.row
    place = {
        "document_id": row["document_id"],
        "chunk_id": row["chunk_id"],
        "filename": row["filename"],
        "path": row["path"],
        "source": row["source"],
        "uri": row["uri"],
        "page": row["page"],
        "headings": list(row["headings"] or ()),
        "span": [row["start"], row["end"]],
    }
    return forms.DifyRecord(
        content=row["text"],
        score=round(hit.relevance or 0.0, 6),
        title=row["title"] or row["filename"] or "Untitled",
        metadata={**place, **shown.shown_metadata(settings, row)},
    )
