"""Requests and answers of `/api/v1/knowledge`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from parquetry.serving.http.agent_models import examples
from parquetry.serving.service.request_filters import RequestFilters, RequestModel, Text

MOST_DOCUMENTS = 1000
MOST_QUERIES = 100
MOST_RESULTS = 200
MOST_CHUNKS = 2000
"""results of all queries of a request"""
LONGEST_QUERY = 32_768
"""characters"""
LONGEST_CONTEXT = 32_768
"""characters, over all turns"""
MOST_TURNS = 1000


class NewText(RequestModel):
    """A document to add."""

    text: str = Field(examples=["Everybody has thirty days of holiday."])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{"author": "Ada"}])
    source: str | None = Field(
        None, min_length=1, max_length=1024, description="Name of the document.", examples=["leave.md"]
    )
    tags: list[Text] = Field(default_factory=list, max_length=100, fail_fast=True)
    visibility: Literal["public", "organization", "individual"] | None = None
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    shared: bool | None = None


class NewTexts(RequestModel):
    """Documents to add together."""

    model_config = examples(
        {
            "documents": [
                {"text": "Everybody has thirty days of holiday.", "source": "leave.md", "metadata": {"year": 2031}}
            ]
        }
    )

    documents: list[NewText] = Field(min_length=1, max_length=MOST_DOCUMENTS, fail_fast=True)


class Ingested(BaseModel):
    """Ids of the documents, in the order of the request."""

    document_ids: list[str]
    ingested: int = Field(examples=[1])
    warnings: list[str] = Field(default_factory=list)


class Accepted(BaseModel):
    """A write that goes on; its job tells when it is done."""

    job_id: str
    state: str = Field(examples=["queued"])


class DocumentItem(BaseModel):
    """A document in a list."""

    document_id: str
    filename: str
    title: str | None
    source: str
    uri: str
    media_type: str | None
    size: int = Field(description="Bytes.")
    chunks: int
    status: str = Field(examples=["indexed"])
    error: str | None
    visibility: str
    tags: list[str]
    metadata: dict[str, Any]
    uploaded_by: str | None
    created_at: datetime
    indexed_at: datetime


class DocumentItems(BaseModel):
    """A page of documents."""

    documents: list[DocumentItem]
    total: int
    limit: int
    offset: int
    version: int = Field(description="Version of the corpus that the whole list is of.")
    next: str | None = Field(description="`page` of the page after this one; null for the last.")


class DocumentText(DocumentItem):
    """A document with its text."""

    text: str


class ChunkItem(BaseModel):
    """A chunk of a document."""

    chunk_id: str
    chunk_index: int
    text: str
    span: list[int]
    page: int | None
    headings: list[str]
    tokens: int | None


class ChunkList(BaseModel):
    """The chunks of a document, in order."""

    document_id: str
    chunks: list[ChunkItem]


class RemovedDocument(BaseModel):
    """A document that was removed."""

    document_id: str
    deleted_chunks: int


class ChatTurn(RequestModel):
    """An earlier turn of a conversation."""

    role: str = Field(max_length=64)
    content: str = Field(max_length=LONGEST_CONTEXT)


Query = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
Turns = Annotated[list[ChatTurn], Field(max_length=MOST_TURNS, fail_fast=True)]


class Retrieve(RequestModel):
    """A question to the corpus."""

    model_config = examples(
        {"query": "How many days of holiday?"},
        {"query": "How many days of holiday?", "top_k": 3, "include_citations": True, "min_score": 0.3},
        {"queries": ["holiday", "moving house"], "level": "document", "fields": "all"},
        {"query": "holiday", "filters": {"filename": "*.md", "metadata": {"year": {"gte": 2030}}}, "load": "summary"},
    )

    query: str | None = Field(None, min_length=1, max_length=LONGEST_QUERY, examples=["How many days off do I have?"])
    queries: list[Query] | None = Field(None, min_length=1, max_length=MOST_QUERIES, fail_fast=True)
    vector: list[float] | None = Field(None, min_length=1, max_length=65_536, fail_fast=True)
    top_k: int = Field(5, ge=1, le=MOST_RESULTS)
    include_citations: bool = False
    filters: RequestFilters = Field(default_factory=RequestFilters)
    mode: Literal["hybrid", "vector", "text"] = "hybrid"
    rerank: bool = False
    min_score: float | None = Field(None, ge=0, le=1)
    context: Turns | str | None = Field(None, description="Earlier turns, or a text, that weigh in.")
    level: Literal["chunk", "document"] = "chunk"
    type: Literal["documents", "entries", "both"] = "documents"
    explain: bool | ExplainDocument = False
    load: Literal["summary", "full"] | None = None
    fields: Literal["all"] | None = None

    @model_validator(mode="after")
    def _one_question(self) -> Retrieve:
        given = [name for name in ("query", "queries", "vector") if getattr(self, name) is not None]
        if not given:
            raise ValueError("give query, queries or vector")
        if "query" in given and "queries" in given:
            raise ValueError("give query or queries, not both")
        if self.vector is not None and self.queries is not None:
            raise ValueError("a vector goes with one query, not with queries")
        if self.explain and self.queries is not None:
            raise ValueError("explain goes with one query")
        turns = [self.context or ""] if not isinstance(self.context, list) else [turn.content for turn in self.context]
        if sum(map(len, turns)) > LONGEST_CONTEXT:
            raise ValueError(f"context is longer than {LONGEST_CONTEXT:,} characters")
        if len(self.queries or ()) * self.top_k > MOST_CHUNKS:
            raise ValueError(f"queries times top_k is at most {MOST_CHUNKS:,}; ask for fewer at once")
        return self


class ExplainDocument(RequestModel):
    """The document whose absence is to be explained; without one, all candidates are."""

    document_id: str | None = Field(None, min_length=1, max_length=255)
    vector: bool = Field(False, description="True for the vector of the query, beside all candidates.")


Retrieve.model_rebuild()


class CitationItem(BaseModel):
    """Place of a chunk."""

    source: str
    uri: str
    page: str | None
    span: list[int]
    snippet: str
    metadata: dict[str, Any]


class RetrievedChunk(BaseModel):
    """A chunk that answers the question."""

    chunk_id: str
    document_id: str
    text: str
    score: float = Field(description="Calibrated relevance, 0 to 1.")
    metadata: dict[str, Any]
    citations: list[CitationItem] | None = None
    scores: dict[str, float | None] | None = None
    fields: dict[str, Any] | None = None
    summary: str | None = None
    content: str | None = None
    type: str | None = None


class Retrieved(BaseModel):
    """Chunks, best first; for several queries, a list for each."""

    chunks: list[RetrievedChunk]
    results: list[list[RetrievedChunk]] | None = None
    version: int
    explanation: Any = None


class Ask(RequestModel):
    """A question to be answered in words."""

    question: str = Field(min_length=1, max_length=LONGEST_QUERY)
    top_k: int = Field(3, ge=1, le=MOST_RESULTS)
    filters: RequestFilters = Field(default_factory=RequestFilters)
    mode: Literal["hybrid", "vector", "text"] = "hybrid"


class WordsAnswer(BaseModel):
    """An answer by the language model, and what it rests on."""

    answer: str
    citations: list[CitationItem]
    version: int


class Namespaces(BaseModel):
    """Namespaces that the caller may see."""

    namespaces: list[str]
