"""Interface of the rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from parquetry.llm.spending import Usage

Scores = npt.NDArray[np.float32]
"""float32[n], 0 or less (does not answer) to 1 (answers fully)"""

CANDIDATES_PER_HIT = 3
"""candidates scored per requested hit: the best value for its cost"""


@dataclass(frozen=True, slots=True)
class RerankScores:
    """Scores of some texts for a query."""

    scores: Scores
    """in the order of the texts"""
    usage: Usage = field(default_factory=Usage)
    """billed usage; zero for a model on this machine"""


class Reranker(Protocol):
    """Model that reads a query and a text together. Thread-safe."""

    @property
    def id(self) -> str:
        """Provider and model; scores of different ids are never compared."""
        ...

    def judge(self, query: str, texts: Sequence[str]) -> RerankScores:
        """Score how well each text answers the query.

        Raises:
            TransientError: the service gave no valid answer within the allowed tries.
            BrokenDocument: the service refuses these texts.
            SettingsError: the operator has to act (model, key, quota).
        """
        ...
