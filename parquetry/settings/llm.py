"""Settings sections for the language model and its tasks."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, SecretStr, model_validator

from parquetry.settings.base import HIGHEST_BUDGET, HIGHEST_PRICE, LONGEST_WAIT, Section

_PRICES = ("price_per_million_input_tokens", "price_per_million_output_tokens")


class LlmPrice(Section):
    """Price of one language model."""

    model: str = Field(min_length=1, description="The service's name for it.")
    usd_per_million_input_tokens: float = Field(ge=0, le=HIGHEST_PRICE)
    usd_per_million_output_tokens: float = Field(ge=0, le=HIGHEST_PRICE)
    as_of: date | None = Field(None, description="Day on which it was looked up.")

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a call in US dollars."""
        read = input_tokens * self.usd_per_million_input_tokens
        return (read + output_tokens * self.usd_per_million_output_tokens) / 1e6

    def __str__(self) -> str:
        day = "" if self.as_of is None else f", {self.as_of.isoformat()}"
        return (
            f"${self.usd_per_million_input_tokens:g} per million tokens read, "
            f"${self.usd_per_million_output_tokens:g} written{day}"
        )


class LlmSettings(Section):
    """The language model for image descriptions and session knowledge."""

    model: str | None = Field(
        None, examples=["gpt-4o-mini"], description="Name of a chat model; none configured means none is called."
    )
    base_url: str | None = Field(
        None,
        examples=["http://localhost:11434/v1"],
        description="OpenAI-compatible endpoint; default `OPENAI_BASE_URL`.",
    )
    api_key: SecretStr | None = Field(
        None, examples=["sk-..."], description="Default `OPENAI_API_KEY`; keep it out of the file."
    )
    attempts: int = Field(4, ge=1, le=50, description="Tries per request.")
    timeout_seconds: float = Field(120, gt=0, le=LONGEST_WAIT, description="Per request.")
    max_reply_tokens: int | None = Field(
        None,
        ge=16,
        le=10_000_000,
        examples=[16_000],
        description="Limit of every reply; raise it for a model that thinks before it answers. "
        "Default: 1,000 to 8,000, by what is asked.",
    )
    requests_per_minute: float | None = Field(
        None, gt=0, le=1_000_000, examples=[500.0], description="Of all calls of a process together."
    )
    tokens_per_minute: float | None = Field(
        None,
        gt=0,
        le=100_000_000_000,
        examples=[200_000.0],
        description="Read and written, of all calls of a process together.",
    )
    price_per_million_input_tokens: float = Field(
        0,
        ge=0,
        le=HIGHEST_PRICE,
        description="US dollars, for estimates, budgets and costs; unknown if neither price is set.",
    )
    price_per_million_output_tokens: float = Field(
        0,
        ge=0,
        le=HIGHEST_PRICE,
        description="US dollars, for estimates, budgets and costs; unknown if neither price is set.",
    )
    prices: tuple[LlmPrice, ...] = Field(
        (),
        examples=[
            [
                {
                    "model": "gpt-4o-mini",
                    "usd_per_million_input_tokens": 0.15,
                    "usd_per_million_output_tokens": 0.6,
                    "as_of": date(2026, 7, 3),
                }
            ]
        ],
        description="Prices of single models, which come before the two of all; plans name the day.",
    )

    @model_validator(mode="after")
    def _models_have_one_price(self) -> LlmSettings:
        models = [price.model for price in self.prices]
        for model in models:
            if models.count(model) > 1:
                raise ValueError(f"prices: the model {model} has two; it has one")
        return self

    @property
    def price(self) -> LlmPrice | None:
        """Price of the model; None if the settings specify none. 0 is a price."""
        for each in self.prices:
            if each.model == self.model:
                return each
        if self.model is None or self.model_fields_set.isdisjoint(_PRICES):
            return None
        return LlmPrice(
            model=self.model,
            usd_per_million_input_tokens=self.price_per_million_input_tokens,
            usd_per_million_output_tokens=self.price_per_million_output_tokens,
        )

    @property
    def priced(self) -> bool:
        """True if the settings specify a price of the model."""
        return self.price is not None


class SessionsSettings(Section):
    """Extraction of knowledge from finished chat sessions."""

    workers: int = Field(4, ge=1, le=64, description="Sessions in work at a time.")
    batch_sessions: int = Field(20, ge=1, le=1000, description="Sessions per batch.")
    window_characters: int = Field(
        24_000, ge=1000, le=1_000_000, description="Of a session that the model reads at once; cut between turns."
    )
    overlap_messages: int = Field(4, ge=0, le=100, description="Repeated at the beginning of the next window.")
    include_tools: bool = Field(True, description="Show the model what tools were called and what they returned.")
    min_confidence: float = Field(0.6, ge=0, le=1, description="Entries of which the model is less sure are refused.")
    personal_data: Literal["individual", "refuse"] = Field(
        "individual",
        description="What becomes of an entry for others with personal data: kept for its user alone, or refused.",
    )
    candidates: int = Field(5, ge=1, le=50, description="Known entries that a new one is compared with at most.")
    similarity: float | None = Field(
        None,
        gt=0,
        le=1,
        examples=[0.6],
        description="Cosine from which a known entry is compared; default: measured for the embedder.",
    )
    max_supersessions: int = Field(
        5, ge=0, le=10_000, description="Known entries that one session may replace by merges."
    )
    distill_prompt: str | None = Field(
        None,
        examples=["./prompts/distill.md"],
        description="File that replaces the prompt for learning from a session.",
    )
    compare_prompt: str | None = Field(
        None, examples=["./prompts/compare.md"], description="Replaces the prompt for comparing entries."
    )
    budget_usd: float | None = Field(
        None,
        ge=0,
        le=HIGHEST_BUDGET,
        examples=[5.0],
        description="A run that would cost more stops; what was answered is kept.",
    )
