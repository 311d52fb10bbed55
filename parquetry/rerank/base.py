"""What every reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from parquetry.llm.spending import Usage

Scores = npt.NDArray[np.float32]
"""float32[n], 0 (does not answer) to 1 (answers fully)"""

CANDIDATES_PER_HIT = 3
"""candidates that a reranker sees for every hit that is wanted: what it is worth for what it costs"""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reranker says of some texts."""

    scores: Scores
    """in the order of the texts"""
    usage: Usage = field(default_factory=Usage)
    """what it took; nothing of a model on this machine"""


class Reranker(Protocol):
    """Reads a query and a text together. May be used from several threads."""

    @property
    def id(self) -> str:
        """Provider and model; scores of different ids are never compared."""
        ...

    def judge(self, query: str, texts: Sequence[str]) -> Judgement:
        """How well each text answers the query.

        Raises:
            TransientError: the service did not answer usefully within the allowed tries.
            BrokenDocument: the service refuses these texts.
            SettingsError: the operator has to act (model, key, quota).
        """
        ...
