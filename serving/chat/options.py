"""Fields of a chat request that are the proxy's own: read, and taken out before the request goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from parquetry.serving.service.request_filters import RequestFilters, RequestModel
from parquetry.storage.search.searcher import Mode

_PREFIX = "rag_"


class RagOptions(RequestModel):
    """Fields that begin with `rag_`, of the request itself or of its `metadata`; an unknown one is an error."""

    rag_top_k: int | None = Field(None, ge=0, le=200)
    rag_enable_tools: bool = True
    rag_namespace: str | None = Field(None, max_length=255)
    rag_filters: RequestFilters | None = None
    rag_mode: Mode | None = None
    rag_rerank: bool | None = None

    @field_validator("rag_filters", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        # Values of `metadata` are texts.
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("must be an object, or a text with one in JSON") from None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat request, taken apart."""

    options: RagOptions
    body: Mapping[str, Any]
    """request for the model service, without fields of the proxy"""

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body["messages"]
        return found


def chat_request(given: Mapping[str, Any]) -> ChatRequest:
    """Take a chat request apart. Fields of the request itself win over those of its metadata.

    Raises:
        ValueError: a field of the proxy is unknown or invalid; pydantic's, with the place of each fault.
    """
    body = dict(given)
    metadata = body.get("metadata")
    own: dict[str, Any] = {}
    if isinstance(metadata, dict):
        own = {name: value for name, value in metadata.items() if name.startswith(_PREFIX)}
        left = {name: value for name, value in metadata.items() if name not in own}
        if own:
            body["metadata"] = left
            if not left:
                del body["metadata"]
    own |= {name: body.pop(name) for name in list(body) if name.startswith(_PREFIX)}
    options = RagOptions.model_validate({name: value for name, value in own.items() if value is not None})
    return ChatRequest(options, body)


def text_of(content: Any) -> str:
    """Return the text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def question_of(messages: list[dict[str, Any]], earlier: int = 0) -> tuple[str, str | None]:
    """Return the text of the last user message, and that of the turns before it that weigh in; None if none do.

    Args:
        messages: of the request.
        earlier: number of messages of users and assistants to look back.
    """
    places = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    if not places:
        return "", None
    before = [each for each in messages[: places[-1]] if each.get("role") in ("user", "assistant")]
    texts = [text_of(each.get("content")).strip() for each in before[len(before) - earlier :]] if earlier else []
    return _searchable(text_of(messages[places[-1]].get("content"))), _searchable(
        "\n".join(filter(None, texts))
    ) or None


def _searchable(text: str) -> str:
    """Return a text without halves of characters and NUL, which JSON can carry and no document has."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ").strip()
