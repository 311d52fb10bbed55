"""Sign-bit codes of vectors: 64 bits in a BIGINT column, compared by their Hamming distance.

Each bit tells on which side of a hyperplane a vector lies; a random rotation before taking signs makes the hyperplanes
independent of what the axes of the model mean. Source: Charikar, Similarity Estimation Techniques from Rounding
Algorithms, STOC 2002; the rotation as in Gong and Lazebnik, Iterative Quantization, CVPR 2011, without its training.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

SEED = 20_260_401
"""of the rotation: the same in every index, so that codes never depend on where they were made"""
_WORD_BITS = 64


def code_columns(dimension: int) -> list[str]:
    """Names of the columns that hold the code of a vector."""
    return [f"b{i}" for i in range(-(-dimension // _WORD_BITS))]


@lru_cache(maxsize=8)
def rotation(dimension: int) -> npt.NDArray[np.float32]:
    """A fixed random orthogonal matrix.

    Returns:
        float32[dimension, dimension], one axis a row.

    Source: QR decomposition of a Gaussian matrix with the signs of R's diagonal put right gives the uniform
        distribution over rotations; Mezzadri, How to Generate Random Matrices from the Classical Compact Groups, 2007.
    """
    gaussian = np.random.default_rng(SEED).standard_normal((dimension, dimension))
    orthogonal, triangular = np.linalg.qr(gaussian)
    return (orthogonal * np.sign(np.diag(triangular))).astype(np.float32)


def codes_of(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The codes of vectors.

    Args:
        vectors: float32[n, dimension].

    Returns:
        int64[n, ceil(dimension / 64)]; bit i of word j is set where the vector is on the positive side of axis
        64 j + i; bits past the dimension are 0.
    """
    count, dimension = vectors.shape
    words = len(code_columns(dimension))
    bits = np.zeros((count, words * _WORD_BITS), dtype=np.bool_)
    bits[:, :dimension] = vectors @ rotation(dimension).T > 0
    return np.packbits(bits, axis=1, bitorder="little").view("<i8").astype(np.int64, copy=False)
