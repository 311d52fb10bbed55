"""Settings of the rerank service: `[rerank]`."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from parquetry.known_secrets import announce
from parquetry.settings.addresses import plain_url
from parquetry.settings.base import HIGHEST_PRICE, LONGEST_WAIT, Section

KEY_VARIABLE = "PARQUETRY_RERANK_API_KEY"
_EXAMPLE = "http://localhost:8080"
ScoreScale = Literal["probability", "logit", "cosine"]


class RerankSettings(Section):
    """The rerank service of `search.rerank = "service:<model>"`."""

    base_url: str | None = Field(
        None,
        examples=[_EXAMPLE],
        description="Address below which it answers `POST /rerank`, as of Cohere, Jina, Voyage, TEI, vLLM or LiteLLM.",
    )
    api_key: SecretStr | None = Field(
        None, examples=["..."], description=f"Default `{KEY_VARIABLE}`; keep it out of the file."
    )
    scores: ScoreScale = Field(
        "probability",
        description="Scale of its scores: 0 to 1; any number, which a logistic curve brings between 0 and 1; or -1 to "
        "1, of which what is below 0 has no relevance.",
    )
    batch_texts: int | None = Field(
        None, ge=1, le=10_000, examples=[32], description="Texts per request; default: 100, for TEI 32."
    )
    max_characters: int = Field(4000, ge=16, le=1_000_000, description="Beginning of each text that is sent.")
    attempts: int = Field(3, ge=1, le=50, description="Tries per request when the service fails or limits the rate.")
    timeout_seconds: float = Field(30, gt=0, le=LONGEST_WAIT, description="Per request.")
    requests_per_minute: float | None = Field(
        None, gt=0, le=1_000_000, examples=[100.0], description="Of all searches of a process together."
    )
    tokens_per_minute: float | None = Field(
        None,
        gt=0,
        le=100_000_000_000,
        examples=[1_000_000.0],
        description="Of all searches of a process together.",
    )
    price_per_million_tokens: float = Field(
        0, ge=0, le=HIGHEST_PRICE, description="US dollars, for the cost in `search --explain`."
    )
    price_per_thousand_searches: float = Field(
        0,
        ge=0,
        le=HIGHEST_PRICE,
        description="US dollars, for services that charge by the search of up to 100 texts, as Cohere does.",
    )

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        # Providers print the address of the route itself.
        return plain_url(value, _EXAMPLE).removesuffix("/rerank").rstrip("/")

    @property
    def key(self) -> str:
        """The key of the service, from the settings or the environment; empty if there is none."""
        found = os.environ.get(KEY_VARIABLE, "") if self.api_key is None else self.api_key.get_secret_value()
        announce(found)
        return found
