"""What every embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""float32[n, dimension], each row L2-normalised"""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a batch of texts, in the order of the texts."""

    vectors: Vectors
    """float32[n, dimension], L2-normalised; a refused text has zeros"""
    tokens: int
    """tokens that were paid for"""
    refused: dict[int, str]
    """0-based position -> why this text has no vector"""


class Embedder(Protocol):
    """One embedding model."""

    id: str
    """provider, model, revision of our use of it, and dimension: `wordllama:l2-supercat/1@256`. Vectors of different
    ids are never compared."""
    dimension: int

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed documents' texts."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """float32[dimension] for one query, L2-normalised."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens in each text, exactly where the tokenizer is at hand, else an upper estimate."""
        ...
