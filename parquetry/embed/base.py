"""What every embedder is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.llm.spending import Ledger

Vectors = npt.NDArray[np.float32]
"""float32[n, dimension], each row L2-normalised"""


@dataclass(frozen=True, slots=True)
class Worst:
    """The most tokens that a tokenizer makes of any text."""

    tokens_per_byte: float
    """of a text in UTF-8"""
    tokens_per_text: int
    """besides: what is added to every text"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a batch of texts, in the order of the texts."""

    vectors: Vectors
    """float32[n, dimension], L2-normalised; a refused text has zeros"""
    tokens: int
    """tokens that were paid for"""
    refused: dict[int, str]
    """0-based position -> why this text has no vector, as `reason-in-kebab-case: a sentence`"""
    token_counts: Sequence[int]
    """tokens of each text as the model took it, with prefix and special tokens; as exact as `count_tokens`"""
    unpaid: Mapping[int, str] = field(default_factory=dict)
    """0-based position -> why the budget did not allow to embed this text; it has zeros"""


class Embedder(Protocol):
    """One embedding model. All methods may be called from several threads at once."""

    @property
    def id(self) -> str:
        """Provider, model, revision of our use of it, and dimension: `wordllama:l2-supercat/1@256`.

        Vectors of different ids are never compared.
        """
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def tokenizer_json(self) -> str | None:
        """The model's tokenizer as a serialised Hugging Face `tokenizer.json`; None where it is not at hand."""
        ...

    @property
    def price_per_million_tokens(self) -> float | None:
        """US dollars; 0 for what runs on this machine, None if it is not known."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed documents' texts.

        Raises:
            TransientError: the service did not answer usefully within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name).
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """float32[dimension] for one query, L2-normalised; zeros if there is nothing in it that could be embedded.

        Raises:
            TransientError: the service did not answer usefully within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name).
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """float32[n, dimension]: each row what `embed_query` gives for that text, with as few requests as it takes.

        Raises:
            TransientError: the service did not answer usefully within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name), or a query is refused.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens in each text, exactly where the tokenizer is at hand, else an upper estimate."""
        ...


@runtime_checkable
class Accountable(Protocol):
    """An embedder whose requests cost money."""

    def accounted_by(self, ledger: Ledger) -> Embedder:
        """The same embedder, which makes no request that the ledger's budget does not allow, and writes down each."""
        ...


def model_id(provider: str, model: str, dimension: int, **shaping: str) -> str:
    """The id under which vectors of a model are kept.

    Args:
        provider: name before the colon in the settings.
        model: model with the revision of our use of it.
        dimension: length of a vector.
        shaping: whatever else changes stored vectors; what is empty has no part in the id. What only changes queries
            (their prefix) is left out: changing it must not cost a new embedding of the corpus.
    """
    used = {key: value for key, value in shaping.items() if value}
    variant = f"+{ids.settings_hash(used)}" if used else ""
    return f"{provider}:{model}{variant}@{dimension}"
