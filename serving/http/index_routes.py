"""Routes of the chat proxy beside `/v1`: the files that it answers from, and another look at them."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.callers import AdminCaller, Namespace, Parts, ReadCaller
from parquetry.serving.http.writes import ACCEPTED, AtOnce, outcome
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.writing import submit
from parquetry.storage.search.document_list import count_documents, page_of_documents
from parquetry.storage.search.filters import Filters

router = APIRouter(tags=["chat"])
MOST_FILES = 10_000


class IndexedFile(BaseModel):
    """A document that answers rest on."""

    path: str = Field(description="Path within its source, as in `rag_sources`.")
    source: str = Field(description="File name, as in `rag_sources`.")
    chunks: int
    indexed_at: datetime


class IndexedFiles(BaseModel):
    """Documents of a namespace, oldest first."""

    files: list[IndexedFile]
    total: int


class Reindexed(BaseModel):
    """Outcome of a look at all sources."""

    job_id: str
    version: int | None
    documents: dict[str, Any] = Field(description="Counts: scanned, added, changed, unchanged, removed, failed, ...")
    failures: list[dict[str, Any]]
    warnings: list[str]


@router.get("/files")
def list_files(
    caller: ReadCaller,
    parts: Parts,
    namespace: Namespace,
    limit: Annotated[int, Query(ge=1, le=MOST_FILES)] = MOST_FILES,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> IndexedFiles:
    """List the documents that answers rest on."""
    filters = filters_for(caller, namespace, Filters())
    with parts.follower.reader() as reader, closing(reader.index.session()) as session:
        total = count_documents(session, filters).documents
        rows = page_of_documents(session, filters, limit, offset)
    files = [
        IndexedFile(
            path=row["path"],
            source=row["filename"] or row["title"] or row["path"],
            chunks=row["chunks"] or 0,
            indexed_at=row["indexed_at"],
        )
        for row in rows
    ]
    return IndexedFiles(files=files, total=total)


@router.post("/reindex", response_model=Reindexed, responses=ACCEPTED)
async def look_again(caller: AdminCaller, parts: Parts, at_once: AtOnce) -> Any:
    """Look at all sources again; unchanged files are skipped."""
    namespace = None if caller.namespaces is None else caller.namespace(None, parts.settings.corpus.namespace)
    job = await in_thread(submit, parts, caller, "refresh", namespace, {})
    done = await outcome(parts, job, at_once=at_once)
    if isinstance(done, JSONResponse):
        return done
    result = dict(done.result or {})
    return {
        "job_id": done.id,
        "version": result.get("version"),
        "documents": result.get("documents", {}),
        "failures": result.get("failures", []),
        "warnings": result.get("warnings", []),
    }
