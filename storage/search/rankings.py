"""Lists of chunks that the sides of a search make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from parquetry.storage.search.explanation import Explanation

MOST_REMEMBERED = 1_000
"""length of lists that are kept for another look at the same query"""


class Ranked(NamedTuple):
    """A chunk in the list of a side."""

    chunk: int
    doc: int
    score: float
    identity: float = 0.0
    """part of the score that the document's identity adds"""


@dataclass(frozen=True, slots=True)
class SideLists:
    """The lists of the sides for one query, with their explanation."""

    asked: tuple[Any, ...]
    """query, mode, depth, context, and the vectors"""
    sides: Mapping[str, Sequence[Ranked]]
    weights: Mapping[str, float]
    explanation: Explanation


def best_order(scores: npt.NDArray[np.float64], depth: int) -> npt.NDArray[np.int64]:
    """Return the places of the best `depth` scores, and of all that tie with the last, best first."""
    kept = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
    return kept[np.argsort(-scores[kept], kind="stable")]
