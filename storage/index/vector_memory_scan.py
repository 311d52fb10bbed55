"""A compiled scan of sign-bit codes in memory, by FAISS.

`hammings_knn_mc` reads the codes where they are: no index object is built, and nothing is copied.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from parquetry.storage.index.signatures import query_signature

Codes = npt.NDArray[np.uint8]
EXTRA = "serve"
"""extra of the package that brings the scan"""


def is_available() -> bool:
    """True if the package that scans is installed."""
    return find_spec("faiss") is not None


def load() -> None:
    """Import the package that scans, which takes longer than a search."""
    import faiss  # noqa: F401


def nearest_codes(codes: Codes, vector: npt.NDArray[np.float32], keep: int) -> npt.NDArray[np.int64]:
    """Return the places of the codes with the smallest Hamming distance to a query's.

    Args:
        codes: uint8[n, bytes], contiguous.
        vector: float32[dimension] of the query.
        keep: number of places, at most n.
    """
    import faiss

    # With two threads a query waits for the slower one, which on a busy machine takes a hundred times as long. The
    # number belongs to the calling thread.
    faiss.omp_set_num_threads(1)
    signs, _ = query_signature(vector)
    query = np.array(signs, dtype="<i8").view(np.uint8)
    distances, places = np.empty(keep, np.int32), np.empty(keep, np.int64)
    count, size = codes.shape
    asked, held, near, found = (faiss.swig_ptr(each) for each in (query, codes, distances, places))
    faiss.hammings_knn_mc(asked, held, 1, count, keep, size, near, found)
    return places[places >= 0]
