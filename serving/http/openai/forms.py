"""Requests about files and vector stores in OpenAI's form: unknown fields are refused, as its schema says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from parquetry.model import ChunkSize
from parquetry.serving.stores.attaching import AUTO
from parquetry.serving.stores.attribute_filters import LONGEST_KEY, LONGEST_VALUE, MOST_ATTRIBUTES
from parquetry.sources.uploads.identity import STORE_KEY

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
Order = Literal["asc", "desc"]
StatusFilter = Literal["in_progress", "completed", "failed", "cancelled"]
_MOST_FILES, _MOST_IN_BATCH = 500, 2000
_LONGEST_NAME = 4096
Key = Annotated[str, Field(max_length=LONGEST_KEY)]
Text = Annotated[StrictStr, Field(max_length=LONGEST_VALUE)]
Metadata = Annotated[dict[Key, Text], Field(max_length=MOST_ATTRIBUTES)]
Attributes = Annotated[dict[Key, Text | StrictBool | StrictInt | StrictFloat], Field(max_length=MOST_ATTRIBUTES)]
FileId = Annotated[StrictStr, Field(max_length=128)]


class OpenAiForm(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class FileExpiry(OpenAiForm):
    """Policy by which a file expires."""

    anchor: Literal["created_at"]
    seconds: int = Field(ge=3600, le=2_592_000)


class FileFields(OpenAiForm):
    """Fields of an upload beside its file."""

    purpose: Purpose
    expires_after: FileExpiry | None = None


class StoreExpiry(OpenAiForm):
    """Policy by which a vector store expires."""

    anchor: Literal["last_active_at"]
    days: int = Field(ge=1, le=365)


class AutoChunking(OpenAiForm):
    """The strategy of the service."""

    type: Literal["auto"]

    @property
    def size(self) -> ChunkSize:
        return AUTO


class StaticSize(OpenAiForm):
    """Size of chunks in tokens."""

    max_chunk_size_tokens: int = Field(ge=100, le=4096)
    chunk_overlap_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def _overlap_is_small(self) -> StaticSize:
        if self.chunk_overlap_tokens * 2 > self.max_chunk_size_tokens:
            raise ValueError("chunk_overlap_tokens must not exceed half of max_chunk_size_tokens")
        return self


class StaticChunking(OpenAiForm):
    """A strategy with a size of its own."""

    type: Literal["static"]
    static: StaticSize

    @property
    def size(self) -> ChunkSize:
        return ChunkSize(self.static.max_chunk_size_tokens, self.static.chunk_overlap_tokens)


Chunking = Annotated[AutoChunking | StaticChunking, Field(discriminator="type")]


def _checked_attributes(attributes: dict[str, Any] | None) -> dict[str, Any] | None:
    if attributes is not None and STORE_KEY in attributes:
        raise ValueError(f"the key {STORE_KEY!r} is used by the service; choose another one")
    return attributes


class NewStore(OpenAiForm):
    """Creation of a vector store."""

    name: str | None = Field(None, max_length=_LONGEST_NAME)
    description: str | None = Field(None, max_length=_LONGEST_NAME)
    file_ids: list[FileId] = Field(default=[], max_length=_MOST_FILES)
    expires_after: StoreExpiry | None = None
    chunking_strategy: Chunking | None = None
    metadata: Metadata | None = None


class StoreChange(OpenAiForm):
    """Change of a vector store; fields that are left out stay."""

    name: str | None = Field(None, max_length=_LONGEST_NAME)
    expires_after: StoreExpiry | None = None
    metadata: Metadata | None = None


class NewStoreFile(OpenAiForm):
    """A file to attach to a vector store."""

    file_id: FileId
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None

    @model_validator(mode="after")
    def _attributes_are_free(self) -> NewStoreFile:
        _checked_attributes(self.attributes)
        return self


class AttributeChange(OpenAiForm):
    """New attributes of a file in a vector store."""

    attributes: Attributes | None

    @model_validator(mode="after")
    def _attributes_are_free(self) -> AttributeChange:
        _checked_attributes(self.attributes)
        return self


class NewBatch(OpenAiForm):
    """Files to attach together: `file_ids` with one strategy and attributes for all, or `files` with their own."""

    file_ids: list[FileId] | None = Field(None, min_length=1, max_length=_MOST_IN_BATCH)
    files: list[NewStoreFile] | None = Field(None, min_length=1, max_length=_MOST_IN_BATCH)
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> NewBatch:
        if (self.file_ids is None) == (self.files is None):
            raise ValueError("give either file_ids or files")
        _checked_attributes(self.attributes)
        return self

    @property
    def each(self) -> list[NewStoreFile]:
        """The files with their strategies and attributes."""
        if self.files is not None:
            return self.files
        return [
            NewStoreFile(file_id=file_id, attributes=self.attributes, chunking_strategy=self.chunking_strategy)
            for file_id in self.file_ids or ()
        ]


class RankingOptions(OpenAiForm):
    """Ranking of a search."""

    ranker: Literal["none", "auto", "default-2024-11-15"] = "auto"
    score_threshold: float = Field(0, ge=0, le=1)


class StoreSearch(OpenAiForm):
    """A search in a vector store."""

    query: (
        Annotated[str, Field(max_length=20_000)]
        | Annotated[list[Annotated[str, Field(max_length=20_000)]], Field(min_length=1, max_length=32)]
    )
    rewrite_query: bool = False
    max_num_results: int = Field(10, ge=1, le=50)
    filters: dict[str, Any] | None = None
    ranking_options: RankingOptions | None = None

    @property
    def queries(self) -> list[str]:
        return [self.query] if isinstance(self.query, str) else self.query


class NewUpload(OpenAiForm):
    """Beginning of a file that arrives in parts."""

    filename: str = Field(min_length=1, max_length=_LONGEST_NAME)
    purpose: Purpose
    bytes: int = Field(ge=1)
    mime_type: str = Field(max_length=255)
    expires_after: FileExpiry | None = None


class UploadEnd(OpenAiForm):
    """End of a file that arrived in parts."""

    part_ids: list[FileId] = Field(min_length=1, max_length=10_000)
    md5: str | None = Field(None, max_length=64)
