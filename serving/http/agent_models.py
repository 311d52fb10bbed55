"""Requests and answers of `/api/knowledge`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Request(BaseModel):
    """Base of requests: an unknown field is an error that names it."""

    model_config = ConfigDict(extra="forbid")


class Stats(BaseModel):
    """Size of a namespace."""

    documentCount: int = Field(examples=[43])
    fragmentCount: int = Field(examples=[80])
    agentId: str = Field(description="The namespace.", examples=["default"])


class DocumentSummary(BaseModel):
    """A document in a list."""

    id: str = Field(examples=["0b0c2a2e-6f8f-5d0e-9c6e-0a4b7a3f9d11"])
    filename: str = Field(description="File name, else the title, else `Untitled`.", examples=["leave.md"])
    contentType: str = Field(description="Media type; `unknown` if there is none.", examples=["text/markdown"])
    fileSize: int = Field(description="Bytes.", examples=[1834])
    createdAt: int = Field(description="Milliseconds since 1970, UTC.", examples=[1795555555000])
    fragmentCount: int = Field(examples=[3])
    source: str = Field(description="`upload`, `url`, `youtube`, or the name of the source.", examples=["upload"])
    url: str | None = Field(None, examples=[None])


class DocumentPage(BaseModel):
    """A page of documents."""

    documents: list[DocumentSummary]
    total: int = Field(examples=[43])
    limit: int = Field(examples=[100])
    offset: int = Field(examples=[0])


class DocumentDetail(DocumentSummary):
    """A document with its text."""

    content: str = Field(examples=["# Leave\n\nEverybody has thirty days of holiday.\n"])
    metadata: dict[str, Any] = Field(examples=[{"author": "Ada"}])


class NewDocument(Request):
    """A document to add."""

    content: str = Field(
        description="Text as it is; the bytes of other types in base64.", examples=["Everybody has thirty days."]
    )
    filename: str = Field(min_length=1, max_length=1024, examples=["leave.md"])
    contentType: str | None = Field(None, max_length=255, examples=["text/markdown"])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{"author": "Ada"}])
    includeImageDescriptions: bool = False
    tags: list[str] = Field(default_factory=list, max_length=100, examples=[["policy"]])
    visibility: str | None = Field(None, pattern="^(public|organization|individual)$", examples=["public"])
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    shared: bool | None = None


class NewUrl(Request):
    """A page or video to import."""

    url: str = Field(min_length=1, max_length=8192, examples=["https://example.com/leave"])
    metadata: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list, max_length=100)
    visibility: str | None = Field(None, pattern="^(public|organization|individual)$")
    user_id: str | None = Field(None, max_length=255)
    org_id: str | None = Field(None, max_length=255)
    shared: bool | None = None


class Added(BaseModel):
    """A document that was added and can be searched."""

    ok: bool = True
    documentId: str
    filename: str = Field(examples=["leave.md"])
    contentType: str = Field(examples=["text/markdown"])
    fragmentCount: int = Field(examples=[3])
    warnings: list[str] = Field(default_factory=list)


class AddedUrl(Added):
    """A page or video that was added."""

    isYouTubeTranscript: bool = False


class Fragment(BaseModel):
    """A chunk of a document."""

    id: str
    text: str
    position: int = Field(description="0-based.", examples=[0])
    createdAt: int = Field(description="Milliseconds since 1970, UTC.")


class Fragments(BaseModel):
    """The chunks of a document, by position."""

    documentId: str
    fragments: list[Fragment]
    count: int


class Found(BaseModel):
    """A chunk that answers a question."""

    id: str
    text: str
    similarity: float = Field(description="Calibrated relevance, 0 to 1.", examples=[0.62])
    documentId: str
    documentTitle: str = Field(examples=["Leave"])
    position: int = Field(description="0-based.", examples=[0])


class SearchAnswer(BaseModel):
    """Chunks that answer a question, best first."""

    query: str = Field(examples=["holiday"])
    threshold: float = Field(examples=[0.3])
    results: list[Found]
    count: int


class Deleted(BaseModel):
    """A document that was deleted."""

    ok: bool = True
    deletedFragments: int = Field(examples=[3])
