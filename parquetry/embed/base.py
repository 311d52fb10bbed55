"""Interface of the embedders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.llm.spending import Ledger

if TYPE_CHECKING:
    from parquetry.llm.batch_api import BatchService

Vectors = npt.NDArray[np.float32]
"""float32[n, dimension], each row L2-normalised"""
Gate = Callable[[str], AbstractContextManager[None]]
"""host of a service -> permit for one request to it, which may have to be waited for"""


def no_gate(_: str) -> AbstractContextManager[None]:
    """Return a permit without any limit."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Worst:
    """Upper bound of the tokens of any text."""

    tokens_per_byte: float
    """per byte of the text in UTF-8"""
    tokens_per_text: int
    """added to every text"""


SERVICE_WORST = Worst(1, 8)
"""bound for services: byte-level BPE makes at most one token per byte; other tokenizers of services add special ones"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a batch of texts, in the order of the texts."""

    vectors: Vectors
    """float32[n, dimension], L2-normalised; a refused text has zeros"""
    tokens: int
    """billed tokens"""
    refused: dict[int, str]
    """0-based position -> reason why this text has no vector, as `reason-in-kebab-case: a sentence`"""
    token_counts: Sequence[int]
    """tokens of each text as the model received it, with prefix and special tokens; as exact as `count_tokens`"""
    unpaid: Mapping[int, str] = field(default_factory=dict)
    """0-based position -> reason why the budget did not allow embedding this text; it has zeros"""


class Embedder(Protocol):
    """One embedding model. All methods are thread-safe."""

    @property
    def id(self) -> str:
        """Provider, model, revision of its use here, and dimension: `wordllama:l2-supercat/1@256`.

        Vectors of different ids are never compared.
        """
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def tokenizer_json(self) -> str | None:
        """The model's tokenizer as a serialised Hugging Face `tokenizer.json`; None if it is not available."""
        ...

    @property
    def price_per_million_tokens(self) -> float | None:
        """US dollars; 0 for a model on this machine, None if unknown."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of documents.

        Raises:
            TransientError: the service gave no valid answer within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name).
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: float32[dimension], L2-normalised; zeros if there is nothing in it to embed.

        Raises:
            TransientError: the service gave no valid answer within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name).
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries: float32[n, dimension], each row as `embed_query` returns it, with as few requests as possible.

        Raises:
            TransientError: the service gave no valid answer within the allowed tries.
            SettingsError: the operator has to act (key, quota, model name), or a query is refused.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, exactly if the tokenizer is available, otherwise as an upper estimate."""
        ...


@runtime_checkable
class Accountable(Protocol):
    """Embedder with billed requests."""

    def accounted_by(self, ledger: Ledger) -> Embedder:
        """Return the same embedder limited to the ledger's budget, and recording every request in it."""
        ...


@runtime_checkable
class Limitable(Protocol):
    """Embedder with requests to a service, which may be limited across processes and machines."""

    def limited_by(self, gate: Gate) -> Embedder:
        """Return the same embedder, each of whose requests needs a permit."""
        ...


@runtime_checkable
class Batchable(Protocol):
    """Embedder of a service with a batch API."""

    @property
    def price_per_million_tokens(self) -> float | None:
        """US dollars at the ordinary price; None if unknown."""
        ...

    def batches(self) -> BatchService:
        """Return the service's batches."""
        ...

    def batch_request(self, text: str) -> Mapping[str, Any] | None:
        """Return the body of a request for the vector of one text; None for a text that needs the ordinary way."""
        ...

    def batch_vector(self, reply: Any) -> tuple[Vectors, int]:
        """Return the vector in a reply, float32[dimension], L2-normalised, and the billed tokens.

        Raises:
            TransientError: there is no usable vector in it.
            SettingsError: its vector has another dimension.
        """
        ...


def model_id(provider: str, model: str, dimension: int, **shaping: str) -> str:
    """Return the id under which vectors of a model are stored.

    Args:
        provider: name before the colon in the settings.
        model: model with the revision of its use here.
        dimension: length of a vector.
        shaping: everything else that changes stored vectors; empty values do not appear in the id. A setting that only
            changes queries (their prefix) is left out: changing it must not require re-embedding the corpus.
    """
    used = {key: value for key, value in shaping.items() if value}
    variant = f"+{ids.settings_hash(used)}" if used else ""
    return f"{provider}:{model}{variant}@{dimension}"
