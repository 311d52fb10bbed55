"""The keyword scores of `ranking` over arrays, to the last digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.index.ranking import K1, SCALE, B

Floats = npt.NDArray[np.float32]


def text_sums(
    chunks: npt.NDArray[Any], weights: Floats, frequencies: npt.NDArray[Any], lengths: npt.NDArray[Any], mean: float
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return chunks, each once, and their BM25, as `parquetry.storage.index.ranking.text_scores` computes it.

    Args:
        chunks: [postings]: number of the chunk.
        weights: [postings]: inverse frequency of the term times its weight in the query.
        frequencies: [postings]: number of times that the chunk has the term.
        lengths: [postings]: length of the chunk, in tokens.
        mean: mean length of the visible chunks, in tokens.
    """
    frequency = frequencies.astype(np.float32)
    norm = frequency + np.float32(K1 * (1 - B)) + np.float32(K1 * B / mean) * lengths.astype(np.float32)
    parts = np.rint(weights * np.float32(SCALE * (K1 + 1)) * frequency / norm)
    sums = np.bincount(chunks, weights=parts, minlength=1)
    # No part is zero: the rarity of a term that all of a billion chunks hold is still more than one in SCALE.
    held = np.flatnonzero(sums).astype(np.int32)
    return held, sums[held] / SCALE


def identity_parts(asked: Floats, held: Floats) -> Floats:
    """Return what words add to the scores of identities, as `parquetry.storage.index.ranking.identity_parts` does.

    Args:
        asked: [words]: weight of the term in the query, as in `text_sums`.
        held: [words]: its weight in the identity.
    """
    parts: Floats = np.rint(asked * np.float32(SCALE) * held)
    return parts
