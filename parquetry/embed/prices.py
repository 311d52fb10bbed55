"""Prices of embedding models: of the settings, or of OpenAI's list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from parquetry.settings.embedding import EmbeddingSettings

_LIST = {"text-embedding-3-small": 0.02, "text-embedding-3-large": 0.13, "text-embedding-ada-002": 0.10}
"""US dollars per million tokens"""
_LIST_OF = date(2024, 1, 25)
"""day of the list. Source: https://openai.com/index/new-embedding-models-and-api-updates/"""


@dataclass(frozen=True, slots=True)
class Price:
    """Price of an embedding model."""

    usd_per_million_tokens: float
    as_of: date | None
    """day of which it is; None if nobody said"""
    source: str
    """place that it is from"""

    def as_json(self, embedder: str) -> dict[str, Any]:
        """Return the object that `parquetry plan --json` prints for an embedder."""
        return {
            "embedder": embedder,
            "usd_per_million_tokens": self.usd_per_million_tokens,
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
            "source": self.source,
        }

    def __str__(self) -> str:
        day = "" if self.as_of is None else f", {self.as_of.isoformat()}"
        return f"${self.usd_per_million_tokens:g} per million tokens ({self.source}{day})"


FREE = Price(0.0, None, "this machine")


def service_price(model: str, settings: EmbeddingSettings, *, official: bool) -> Price | None:
    """Return the price of a model of a service; None if it is unknown.

    Args:
        model: the service's name for it.
        settings: whose prices come first: that of the model, then that of all models.
        official: True for OpenAI itself, whose list holds for its own models.
    """
    for each in settings.prices:
        if each.model == model:
            return Price(each.usd_per_million_tokens, each.as_of, "embedding.prices")
    if settings.price_per_million_tokens is not None:
        return Price(settings.price_per_million_tokens, None, "embedding.price_per_million_tokens")
    return Price(_LIST[model], _LIST_OF, "OpenAI's list") if official and model in _LIST else None
