"""What every reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
"""float32[n], 0 (does not answer) to 1 (answers fully)"""

CANDIDATES_PER_HIT = 3
"""candidates that a reranker sees for every hit that is wanted: what it is worth for what it costs"""


class Reranker(Protocol):
    """Reads a query and a text together. May be used from several threads."""

    @property
    def id(self) -> str:
        """Provider and model; scores of different ids are never compared."""
        ...

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """How well each text answers the query, in the order of the texts.

        Raises:
            TransientError: the service did not answer usefully within the allowed tries.
            BrokenDocument: the service refuses these texts.
            SettingsError: the operator has to act (model, key, quota).
        """
        ...
