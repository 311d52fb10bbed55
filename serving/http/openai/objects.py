"""OpenAI's objects for files and vector stores, as answers are checked and the description of the API shows them."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from parquetry.serving.http.openai.forms import Attributes, Purpose, StoreExpiry

Item = TypeVar("Item", bound=BaseModel)


class OpenAiObject(BaseModel):
    """An object, with all of its properties."""

    model_config = ConfigDict(extra="forbid")


class OpenAiList(OpenAiObject, Generic[Item]):
    """A page of a list."""

    object: Literal["list"]
    data: list[Item]
    first_id: str
    last_id: str
    has_more: bool


class OpenAiFile(OpenAiObject):
    """A file."""

    id: str
    object: Literal["file"]
    bytes: int = Field(ge=0)
    created_at: int
    filename: str
    purpose: Purpose
    status: Literal["uploaded", "processed", "error"]
    expires_at: int | None = None


class DeletedFile(OpenAiObject):
    """Answer to the deletion of a file."""

    id: str
    object: Literal["file"]
    deleted: Literal[True]


class OpenAiUpload(OpenAiObject):
    """A file that arrives in parts."""

    id: str
    object: Literal["upload"]
    bytes: int = Field(ge=1)
    created_at: int
    filename: str
    purpose: Purpose
    status: Literal["pending", "completed", "cancelled", "expired"]
    expires_at: int
    file: OpenAiFile | None


class OpenAiUploadPart(OpenAiObject):
    """A part of such a file."""

    id: str
    object: Literal["upload.part"]
    created_at: int
    upload_id: str


class FileCounts(OpenAiObject):
    """Numbers of files by status."""

    in_progress: int = Field(ge=0)
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)
    cancelled: int = Field(ge=0)
    total: int = Field(ge=0)


class OpenAiStore(OpenAiObject):
    """A vector store."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    description: str | None = None
    usage_bytes: int = Field(ge=0)
    file_counts: FileCounts
    status: Literal["expired", "in_progress", "completed"]
    expires_after: StoreExpiry | None = None
    expires_at: int | None
    last_active_at: int | None
    metadata: dict[str, str]


class DeletedStore(OpenAiObject):
    """Answer to the deletion of a vector store."""

    id: str
    object: Literal["vector_store.deleted"]
    deleted: Literal[True]


class LastError(OpenAiObject):
    """Reason why a file failed."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class ChunkTokens(OpenAiObject):
    """Size of chunks in tokens."""

    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class UsedChunking(OpenAiObject):
    """Strategy by which a file was chunked."""

    type: Literal["static", "other"]
    static: ChunkTokens | None = None


class OpenAiStoreFile(OpenAiObject):
    """A file of a vector store."""

    id: str
    object: Literal["vector_store.file"]
    usage_bytes: int = Field(ge=0)
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    last_error: LastError | None
    chunking_strategy: UsedChunking
    attributes: Attributes


class DeletedStoreFile(OpenAiObject):
    """Answer to the removal of a file from a vector store."""

    id: str
    object: Literal["vector_store.file.deleted"]
    deleted: Literal[True]


class OpenAiFileBatch(OpenAiObject):
    """Files that are attached together."""

    id: str
    object: Literal["vector_store.files_batch"]
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    file_counts: FileCounts


class TextPart(OpenAiObject):
    """A text."""

    type: Literal["text"]
    text: str


class StoreResult(OpenAiObject):
    """A result of a search."""

    file_id: str
    filename: str
    score: float = Field(ge=0, le=1)
    attributes: Attributes
    content: list[TextPart]


class SearchResultsPage(OpenAiObject):
    """A page of results."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[StoreResult]
    has_more: bool
    next_page: str | None


class FileContentPage(OpenAiObject):
    """A page of the text of a file."""

    object: Literal["vector_store.file_content.page"]
    data: list[TextPart]
    has_more: bool
    next_page: str | None
