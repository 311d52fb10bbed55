"""Checks of vectors before they are stored: finite, of the model's dimension, of unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquetry.errors import SettingsError, TransientError

NO_TOKENS = "no-tokens: there is nothing in the text that the model knows"
NOT_FINITE = "not-finite: the model's vector holds NaN or infinity"
ZERO_VECTOR = "zero-vector: the model's vector has no direction"


def blank(texts: Sequence[str]) -> dict[int, str]:
    """Return the 0-based positions of blank texts, with the reason."""
    return {position: NO_TOKENS for position, text in enumerate(texts) if not text.strip()}


def unit_rows(vectors: npt.NDArray[np.float32]) -> dict[int, str]:
    """Scale every row to unit length, in place.

    Args:
        vectors: float32[n, dimension], any scale.

    Returns:
        0-based row -> reason why it has no direction; such a row is set to zeros.
    """
    # Squares of large components overflow, and those of small ones underflow; dividing by the largest first avoids
    # both.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    usable = np.isfinite(largest) & (largest > 0)
    refused = {
        int(row): ZERO_VECTOR if largest[row] == 0 else NOT_FINITE  # NaN propagates through max
        for row in np.flatnonzero(~usable)
    }
    vectors[~usable] = 0
    vectors /= np.where(usable, largest, 1)[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.where(usable, length, 1)[:, None]
    return refused


def in_order(
    indices: Sequence[int], expected: int, service: str = "the embedding service", what: str = "vectors"
) -> npt.NDArray[np.intp]:
    """Return the position of each text's answer in a service's reply.

    Args:
        indices: the service's `index` values, in the order of its reply.
        expected: number of texts sent.
        service: the service, for messages.
        what: its answers, for messages.

    Returns:
        intp[expected]: for every text, the position of its answer in the reply.

    Raises:
        TransientError: a text has no answer or more than one.
    """
    places = np.full(expected, -1, np.intp)
    for place, index in enumerate(indices):
        if not 0 <= index < expected or places[index] >= 0:
            raise TransientError("bad-reply", f"{service} answered {expected} texts with index {index}")
        places[index] = place
    if len(indices) != expected:
        raise TransientError("bad-reply", f"{service} answered {expected} texts with {len(indices)} {what}")
    return places


def same_dimension(got: int, wanted: int, model: str) -> None:
    """Check that vectors have the dimension of the corpus.

    Raises:
        SettingsError: they differ.
    """
    if got != wanted:
        raise SettingsError(
            f"{model} answers with vectors of {got} numbers where {wanted} are expected; "
            f"set embedding.dimension to what the model gives, and reindex if the model behind the name has changed"
        )
