"""Requests and answers of `/api/knowledge`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from parquetry.model import Visibility
from parquetry.serving.service.request_filters import RequestModel, Text

_SHARED = frozenset({"user_id", "org_id"})
"""fields that have one spelling in all dialects"""


def _camel(name: str) -> str:
    return name if name in _SHARED else to_camel(name)


def examples(*each: dict[str, Any]) -> ConfigDict:
    """Return the model settings with whole requests as examples."""
    return ConfigDict(json_schema_extra={"examples": list(each)})


class CamelRequest(RequestModel):
    """Base of requests whose fields are written `likeThis`, except those that all dialects share."""

    model_config = ConfigDict(extra="forbid", alias_generator=_camel, validate_by_name=True)


class AnswerModel(BaseModel):
    """Base of answers whose fields are written `likeThis`."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class Stats(AnswerModel):
    """Size of a namespace."""

    document_count: int = Field(examples=[43])
    fragment_count: int = Field(examples=[80])
    agent_id: str = Field(description="The namespace.", examples=["default"])


class DocumentSummary(AnswerModel):
    """A document in a list."""

    id: str = Field(examples=["0b0c2a2e-6f8f-5d0e-9c6e-0a4b7a3f9d11"])
    filename: str = Field(description="File name, else the title, else `Untitled`.", examples=["leave.md"])
    content_type: str = Field(description="Media type; `unknown` if there is none.", examples=["text/markdown"])
    file_size: int = Field(description="Bytes.", examples=[1834])
    created_at: int = Field(description="Milliseconds since 1970, UTC.", examples=[1795555555000])
    fragment_count: int = Field(examples=[3])
    source: str = Field(description="`upload`, `url`, `youtube`, or the name of the source.", examples=["upload"])
    url: str | None = Field(None, examples=[None])


class DocumentListing(AnswerModel):
    """A page of documents."""

    documents: list[DocumentSummary]
    total: int = Field(examples=[43])
    limit: int = Field(examples=[100])
    offset: int = Field(examples=[0])


class DocumentDetail(DocumentSummary):
    """A document with its text."""

    content: str = Field(examples=["# Leave\n\nEverybody has thirty days of holiday.\n"])
    metadata: dict[str, Any] = Field(examples=[{"author": "Ada"}])


class NewDocument(CamelRequest):
    """A document to add."""

    model_config = examples({"content": "Everybody has thirty days of holiday.", "filename": "leave.md"})

    content: str = Field(
        description="Text as it is; the bytes of other types in base64.", examples=["Everybody has thirty days."]
    )
    filename: str = Field(min_length=1, max_length=1024, examples=["leave.md"])
    content_type: str | None = Field(None, max_length=255, examples=["text/markdown"])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{"author": "Ada"}])
    include_image_descriptions: bool = False
    tags: list[Text] = Field(default_factory=list, max_length=100, examples=[["policy"]], fail_fast=True)
    visibility: Visibility | None = Field(None, examples=["public"])
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    shared: bool | None = None
    namespace: str | None = Field(None, max_length=255, description="Namespace; the query and a header name one, too.")


class NewUrl(CamelRequest):
    """A page or video to import."""

    url: str = Field(min_length=1, max_length=8192, examples=["https://example.com/leave"])
    metadata: dict[str, Any] = Field(default_factory=dict)
    tags: list[Text] = Field(default_factory=list, max_length=100, fail_fast=True)
    visibility: Visibility | None = Field(None)
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    shared: bool | None = None
    namespace: str | None = Field(None, max_length=255, description="Namespace; the query and a header name one, too.")


class AddedDocument(AnswerModel):
    """A document that was added and can be searched."""

    ok: bool = True
    document_id: str
    filename: str = Field(examples=["leave.md"])
    content_type: str = Field(examples=["text/markdown"])
    fragment_count: int = Field(examples=[3])
    warnings: list[str] = Field(default_factory=list)


class AddedUrl(AddedDocument):
    """A page or video that was added."""

    is_you_tube_transcript: bool = False


class Fragment(AnswerModel):
    """A chunk of a document."""

    id: str
    text: str
    position: int = Field(description="0-based.", examples=[0])
    created_at: int = Field(description="Milliseconds since 1970, UTC.")


class Fragments(AnswerModel):
    """The chunks of a document, by position."""

    document_id: str
    fragments: list[Fragment]
    count: int


class Found(AnswerModel):
    """A chunk that answers a question."""

    id: str
    text: str
    similarity: float = Field(description="Calibrated relevance, 0 to 1.", examples=[0.62])
    document_id: str
    document_title: str = Field(examples=["Leave"])
    position: int = Field(description="0-based.", examples=[0])


class SearchAnswer(AnswerModel):
    """Chunks that answer a question, best first."""

    query: str = Field(examples=["holiday"])
    threshold: float = Field(examples=[0.3])
    results: list[Found]
    count: int


class Deleted(AnswerModel):
    """A document that was deleted."""

    ok: bool = True
    deleted_fragments: int = Field(examples=[3])
