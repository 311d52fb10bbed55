"""Settings of chunks and of the requests to the embedding service."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from parquetry.settings.base import HIGHEST_PRICE, LONGEST_WAIT, Section


class ChunkingSettings(Section):
    """Splitting of texts into chunks."""

    preset: Literal["characters-1200", "characters-1000", "tokens-512"] | None = Field(
        None,
        examples=["tokens-512"],
        description="Sets size, overlap and unit: 1,200 characters with 200 overlap, 1,000 characters with 200, "
        "512 tokens with 20. Explicit keys win over it.",
    )
    size: int = Field(1200, ge=16, le=100_000, description="Largest chunk, in units.")
    overlap: int = Field(
        200, ge=0, le=99_999, description="Repeated between neighbours of one section, in units; below size."
    )
    unit: Literal["characters", "tokens"] = Field(
        "characters", description="What size and overlap count; tokens are the embedder's."
    )
    across_pages: bool = Field(False, description="Let a chunk run over the end of a page.")

    @model_validator(mode="before")
    @classmethod
    def _apply_preset(cls, values: Any) -> Any:
        preset = values.get("preset") if isinstance(values, dict) else None
        if isinstance(preset, str) and preset in CHUNKING_PRESETS:
            return {**CHUNKING_PRESETS[preset], **values}
        return values

    @model_validator(mode="after")
    def _overlap_below_size(self) -> ChunkingSettings:
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size})")
        return self


CHUNKING_PRESETS: dict[str, dict[str, Any]] = {
    "characters-1200": {"size": 1200, "overlap": 200, "unit": "characters"},
    "characters-1000": {"size": 1000, "overlap": 200, "unit": "characters"},
    "tokens-512": {"size": 512, "overlap": 20, "unit": "tokens"},
}


class ModelPrice(Section):
    """Price of one model of an embedding service."""

    model: str = Field(min_length=1, description="The service's name for it.")
    usd_per_million_tokens: float = Field(ge=0, le=HIGHEST_PRICE)
    as_of: date | None = Field(None, description="Day on which it was looked up.")


class EmbeddingSettings(Section):
    """Embedded text, and requests to the embedding service."""

    template: str = Field(
        "{text}",
        description="What is embedded for a chunk; may use {title}, {headings} and {text}.",
    )
    dimension: int | None = Field(
        None, ge=1, le=65_536, examples=[512], description="Asked of models that can shorten their vectors."
    )
    base_url: str | None = Field(
        None,
        examples=["http://localhost:11434/v1"],
        description="OpenAI-compatible endpoint; default `OPENAI_BASE_URL`.",
    )
    api_key: SecretStr | None = Field(
        None, examples=["sk-..."], description="Default `OPENAI_API_KEY`; keep it out of the file."
    )
    batch_inputs: int = Field(256, ge=1, le=2048, description="Texts per request.")
    batch_tokens: int = Field(100_000, ge=1, le=300_000, description="Tokens per request.")
    max_input_tokens: int = Field(8192, ge=1, le=10_000_000, description="Longest text the model takes, in tokens.")
    attempts: int = Field(6, ge=1, le=50, description="Tries per request when the service fails or limits the rate.")
    timeout_seconds: float = Field(60, gt=0, le=LONGEST_WAIT, description="Per request.")
    price_per_million_tokens: float | None = Field(
        None,
        ge=0,
        le=HIGHEST_PRICE,
        examples=[0.02],
        description="US dollars, for estimates and budgets; default: known for OpenAI's own models and those on this "
        "machine, else unknown. 0 for a service that costs nothing.",
    )
    prices: tuple[ModelPrice, ...] = Field(
        (),
        examples=[[{"model": "text-embedding-3-small", "usd_per_million_tokens": 0.02, "as_of": date(2026, 7, 3)}]],
        description="Prices of single models, which come before the one of all; `plan` names the day.",
    )
    query_prefix: str = Field("", description="Put before queries, for models that want one.")
    document_prefix: str = Field("", description="Put before documents, for models that want one.")

    @model_validator(mode="after")
    def _models_have_one_price(self) -> EmbeddingSettings:
        models = [price.model for price in self.prices]
        for model in models:
            if models.count(model) > 1:
                raise ValueError(f"prices: the model {model} has two; it has one")
        return self

    @model_validator(mode="after")
    def _template_is_usable(self) -> EmbeddingSettings:
        try:
            rendered = self.template.format(title="\x00t", headings="\x00h", text="\x00x")
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"template {self.template!r} may only use {{title}}, {{headings}} and {{text}}") from error
        if "\x00x" not in rendered:
            raise ValueError(f"template {self.template!r} must contain {{text}}")
        return self
