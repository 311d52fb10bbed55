"""Sign-bit codes of vectors: 64 bits in a BIGINT column, compared by their Hamming distance.

Each bit gives the side of a hyperplane on which a vector lies; a random rotation before taking signs makes the
hyperplanes independent of what the axes of the model mean. Source: Charikar, Similarity Estimation Techniques from
Rounding Algorithms, STOC 2002; the rotation as in Gong and Lazebnik, Iterative Quantization, CVPR 2011, without its
training.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

SEED = 20_260_401
"""seed of the rotation: the same in every index, so that codes do not depend on the machine"""
_WORD_BITS = 64
_ROUNDING = 1e-5
"""possible rounding error of a float32 sum as a fraction of the vector's length, with a margin"""
_FEW = 200
"""vectors that one thread turns in a few milliseconds"""


def signature_columns(dimension: int) -> list[str]:
    """Return the names of the columns that hold the code of a vector."""
    return [f"b{i}" for i in range(-(-dimension // _WORD_BITS))]


def bit_place(bit: int) -> tuple[int, int]:
    """Return the index of the word that holds a bit of a code, and the signed word in which only that bit is set."""
    word, place = divmod(bit, _WORD_BITS)
    return word, (1 << place) - (1 << _WORD_BITS if place == _WORD_BITS - 1 else 0)


@lru_cache(maxsize=8)
def rotation(dimension: int) -> npt.NDArray[np.float32]:
    """Return a fixed random orthogonal matrix.

    Returns:
        float32[dimension, dimension], one axis per row.

    Source: QR decomposition of a Gaussian matrix with the signs of R's diagonal corrected gives the uniform
    distribution over rotations; Mezzadri, How to Generate Random Matrices from the Classical Compact Groups, 2007.
    """
    gaussian = np.random.default_rng(SEED).standard_normal((dimension, dimension))
    orthogonal, triangular = np.linalg.qr(gaussian)
    return (orthogonal * np.sign(np.diag(triangular))).astype(np.float32)


def query_signature(vector: npt.NDArray[np.float32]) -> tuple[list[int], list[int]]:
    """Return the code of a query and a mask of its significant bits.

    Args:
        vector: float32[dimension].

    Returns:
        int64 words of the signs, and int64 words with a bit set where the rotated query's magnitude is at least the
        median.
    """
    # A search uses one thread; BLAS would take several for the operator.
    turned = np.vecdot(rotation(len(vector)), vector)
    magnitude = np.abs(turned)
    return _packed(turned[None] > 0)[0].tolist(), _packed(magnitude[None] >= np.median(magnitude))[0].tolist()


def signatures_of(
    vectors: npt.NDArray[np.float32], axes: npt.NDArray[np.float32] | None = None
) -> npt.NDArray[np.int64]:
    """Return the codes of vectors.

    Args:
        vectors: float32[n, dimension].
        axes: the rotation, if it is there already.

    Returns:
        int64[n, ceil(dimension / 64)]; bit i of word j is set where the vector is on the positive side of axis
        64 j + i; bits past the dimension are 0.
    """
    turned_by = rotation(vectors.shape[1]) if axes is None else axes
    if len(vectors) <= _FEW:
        # BLAS would take several threads for the operator, which wait for each other where others work.
        return _packed(np.vecdot(turned_by[None], vectors[:, None]) > 0)
    return _packed(vectors @ turned_by.T > 0)


def are_signatures_of(codes: npt.NDArray[np.int64], vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """True where codes are those of the vectors, regardless of the order of summation on the machine.

    Args:
        codes: int64[n, words].
        vectors: float32[n, dimension].

    Returns:
        bool[n]; bits of coordinates that rounding could have flipped are ignored.
    """
    turned = vectors @ rotation(vectors.shape[1]).T
    certain = np.abs(turned) > _ROUNDING * np.linalg.norm(vectors, axis=1, keepdims=True)
    differing = (codes ^ _packed(turned > 0)) & _packed(certain)
    return np.asarray(~differing.any(axis=1), dtype=np.bool_)


def _packed(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    count, dimension = bits.shape
    padded = np.zeros((count, len(signature_columns(dimension)) * _WORD_BITS), dtype=np.bool_)
    padded[:, :dimension] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<i8").astype(np.int64, copy=False)
