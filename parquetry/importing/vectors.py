"""Checks of imported vectors: numbers, of one dimension, finite, with a direction; stored with length 1."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.embed.base import Vectors
from parquetry.importing.chunk import RejectedRow

_UNIT = 1e-3
"""difference from 1 up to which a length is kept as it is: vectors that were exported come back unchanged"""
_MOST_CHARACTERS = 2_000_000
"""characters of a vector that is written as text"""


@dataclass
class VectorChecker:
    """Checks the vectors of a dump.

    Args:
        dimension: length of the vectors; None for that of the first one.
    """

    dimension: int | None
    shortest: float = float("inf")
    """smallest L2 norm so far"""
    longest: float = 0.0
    """largest L2 norm so far"""

    def checked(self, value: Any) -> Vectors:
        """Return a vector as it is stored: float32[dimension], L2-normalised.

        Args:
            value: array, list of numbers, or its text as pgvector writes it.

        Raises:
            RejectedRow: it is no vector of the model.
        """
        found = _numbers(value)
        if self.dimension is not None and len(found) != self.dimension:
            raise RejectedRow("wrong-dimension", f"its vector has {len(found):,} numbers, not {self.dimension:,}")
        if not np.isfinite(found).all():
            raise RejectedRow("not-finite", "its vector holds NaN or infinity")
        largest = float(np.abs(found).max())
        if not largest:
            raise RejectedRow("zero-vector", "its vector has no direction")
        # Squares of large numbers overflow.
        norm = largest * float(np.linalg.norm(found / largest))
        vector: Vectors = found.astype(np.float32) if abs(norm - 1) <= _UNIT else _unit(found / largest)
        self.dimension = len(found)
        self.shortest, self.longest = min(self.shortest, norm), max(self.longest, norm)
        return vector

    @property
    def scaled(self) -> bool:
        """True if the lengths of some vectors were not 1."""
        return self.longest > 1 + _UNIT or self.shortest < 1 - _UNIT


def _unit(row: npt.NDArray[np.float64]) -> Vectors:
    unit: Vectors = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def _numbers(value: Any) -> npt.NDArray[np.float64]:
    if value is None:
        raise RejectedRow("no-vector", "the row has no vector; --vector-field names its field")
    if isinstance(value, str):
        value = _parsed(value)
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RejectedRow("bad-vector", "its vector is no list of numbers") from error
    if found.ndim != 1 or not len(found):
        raise RejectedRow("bad-vector", "its vector is no list of numbers")
    return found


def _parsed(text: str) -> Any:
    """Return the vector in a text such as `[0.1,0.2]`."""
    if len(text) > _MOST_CHARACTERS:
        raise RejectedRow("bad-vector", "the text of its vector is too long")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RejectedRow("bad-vector", "its vector is no list of numbers") from error
