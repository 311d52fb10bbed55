"""Requests and answers of jobs, runs, versions, entries and feedback."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from parquetry.serving.http.agent_models import examples
from parquetry.serving.jobs.model import Kind, State
from parquetry.serving.service.feedback import AnswerFeedback, Feedback
from parquetry.serving.service.request_filters import RequestModel, Text


class JobItem(BaseModel):
    """A write or run, and what became of it."""

    id: str
    kind: Kind
    namespace: str | None
    state: State
    result: dict[str, Any] | None
    reason: str | None
    detail: str | None
    progress: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobList(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobItem]


class NewJob(RequestModel):
    """A run to start."""

    model_config = examples({"kind": "reindex", "all": True})

    kind: Literal["refresh", "reindex", "restore", "clear"]
    namespace: str | None = Field(None, max_length=255)
    targets: list[Text] = Field(
        default_factory=list, max_length=1000, description="Of a refresh: names of sources.", fail_fast=True
    )
    allow_removals: bool = False
    rehash: bool = False
    documents: list[Text] = Field(default_factory=list, max_length=10_000, description="Of a reindex.", fail_fast=True)
    all: bool = False
    embeddings_only: bool = False
    version: int | None = Field(None, ge=0, lt=2**63, description="Of a restore.")
    shared: bool | None = Field(None, description="Of a clear: only shared uploads, or only the caller's own.")

    @model_validator(mode="after")
    def _complete(self) -> NewJob:
        if self.kind == "restore" and self.version is None:
            raise ValueError("a restore needs version")
        if self.kind == "reindex" and bool(self.documents) == self.all:
            raise ValueError("a reindex needs documents, or all: true")
        return self


class RunList(BaseModel):
    """Runs, the newest first: rows of the table `runs`."""

    runs: list[dict[str, Any]]


class VersionItem(BaseModel):
    """A published version."""

    version: int
    run_id: str | None
    published_at: datetime
    rows: int | None = Field(description="Rows of `documents` that it wrote; null for callers who do not see them all.")


class VersionList(BaseModel):
    """Published versions, the newest first."""

    versions: list[VersionItem]
    current: int


class EntryItem(BaseModel):
    """A knowledge entry."""

    entry_id: str
    namespace: str
    kind: str
    text: str
    visibility: str
    confidence: float | None
    sessions: int
    last_said: datetime | None


class EntryList(BaseModel):
    """Live entries, the most recently stated first."""

    entries: list[EntryItem]
    total: int


class ChatMessage(BaseModel):
    """A message of a chat; what else it has is kept."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(max_length=64)
    content: Any


class NewSession(RequestModel):
    """A finished chat to learn from."""

    session_id: str = Field(min_length=1, max_length=512, examples=["chat-17"])
    messages: list[ChatMessage] = Field(min_length=1, max_length=50_000, fail_fast=True)
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    metadata: dict[str, Any] = Field(default_factory=dict)
    namespace: str | None = Field(None, max_length=255, description="Namespace; the query and a header name one, too.")


class NewFeedback(RequestModel):
    """A judgement on an answer."""

    model_config = examples({"query": "holiday", "document_id": "{document_id}", "relevant": True})

    query: str = Field(min_length=1, max_length=32_768)
    document_id: str = Field(min_length=1, max_length=255)
    chunk_id: str | None = Field(None, max_length=512)
    relevant: bool
    comment: str | None = Field(None, max_length=4_000)
    namespace: str | None = Field(None, max_length=255, description="Namespace; the query and a header name one, too.")


class FeedbackList(BaseModel):
    """Judgements, the newest first."""

    feedback: list[Feedback]
    answers: list[AnswerFeedback] = Field(description="Judgements on answers of the dashboard's chat.")


class Ready(BaseModel):
    """Questions are answered."""

    status: Literal["ready"] = "ready"


class Health(BaseModel):
    """State of the service; nothing secret."""

    status: Literal["ok", "starting", "degraded"]
    version: str = Field(description="Version of the program.")
    corpus_version: int | None
    read_only: bool
    corpus: str = Field(description="Name of its folder.")
    models: dict[str, str | None] = Field(description="Names of the embedder, language model and reranker.")
    detail: str | None = None
