"""Settings of the chat proxy: `[upstream]` and `[[agent]]`."""

from __future__ import annotations

import os
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from parquetry.known_secrets import announce
from parquetry.settings.addresses import plain_url
from parquetry.settings.base import LONGEST_WAIT, MOST_BYTES, Section

KEY_VARIABLE = "PARQUETRY_UPSTREAM_API_KEY"
_OFFICIAL_HOST = "api.openai.com"
ToolName = Literal["read_full_document", "search_knowledge"]


class UpstreamSettings(Section):
    """The model service that the chat proxy passes requests on to."""

    base_url: str | None = Field(
        None,
        examples=["http://localhost:11434/v1"],
        description="OpenAI-compatible endpoint, as of Ollama, llama.cpp, vLLM or OpenAI; none means no chat proxy.",
    )
    api_key: SecretStr | None = Field(
        None,
        examples=["sk-..."],
        description=f"Default `{KEY_VARIABLE}`, and for OpenAI itself `OPENAI_API_KEY`; keep it out of the file.",
    )
    connect_seconds: float = Field(10, gt=0, le=LONGEST_WAIT, description="Time for a connection.")
    silence_seconds: float = Field(300, gt=0, le=LONGEST_WAIT, description="Longest wait for the next bytes.")
    attempts: int = Field(2, ge=1, le=10, description="Tries to connect; no answer is asked for twice.")
    max_connections: int = Field(256, ge=1, le=10_000, description="Connections of a worker at a time.")
    max_answer_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024,
        le=MOST_BYTES,
        description="Largest answer of a chat that is not streamed, and largest response. The stream of a chat has no "
        "limit, except for the text before the call of a tool.",
    )
    earlier_turns: int = Field(
        0, ge=0, le=100, description="Messages before the last one that weigh in on what is searched for."
    )
    native_responses: bool = Field(
        False,
        description="The endpoint has `/responses` itself: requests without `file_search` are passed on to it as they "
        "are, instead of being translated to chat completions.",
    )
    response_days: float = Field(
        30, ge=0, le=3650, description="Days to keep responses of `/v1/responses` for their callers; 0 keeps none."
    )
    max_responses: int = Field(
        10_000, ge=1, le=1_000_000, description="Responses kept for a token; a newer one takes the place of the oldest."
    )

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        return None if value is None else plain_url(value, "http://localhost:11434/v1")

    @property
    def key(self) -> str | None:
        """The key of the service itself, from the settings or the environment; None if there is none."""
        if self.api_key is not None:
            return self.api_key.get_secret_value()
        found = os.environ.get(KEY_VARIABLE)
        if not found and urlsplit(self.base_url or "").hostname == _OFFICIAL_HOST:
            found = os.environ.get("OPENAI_API_KEY")
        announce(found)
        return found or None


class AgentSettings(Section):
    """A model of the chat proxy with a prompt, documents and ways of searching of its own."""

    name: str = Field(
        min_length=1,
        max_length=255,
        examples=["hr-helper"],
        description="Its name as a model; agents come first.",
    )
    model: str = Field(min_length=1, examples=["llama3.2"], description="Model of the upstream.")
    system_prompt: str | None = Field(
        None, examples=["Answer in one paragraph."], description="Stands before the messages of each request."
    )
    namespaces: tuple[str, ...] = Field(
        (), examples=[["hr"]], description="Namespaces to search in; default: that of the request."
    )
    filters: dict[str, Any] = Field(
        {}, examples=[{"tags": ["policy"]}], description="Conditions on documents, as `filters` of a request."
    )
    top_k: int = Field(3, ge=0, le=200, description="Chunks in the context; 0 for none.")
    mode: Literal["hybrid", "vector", "text"] = Field("hybrid", description="Way of searching.")
    rerank: bool | None = Field(
        None, examples=[True], description="Score again with the model of `search.rerank`; default: if there is one."
    )
    tools: tuple[ToolName, ...] = Field(
        ("read_full_document", "search_knowledge"), description="Tools that the model may call."
    )
    inline_citations: bool = Field(False, description="Number the chunks, and ask the model to cite them as `[1]`.")
