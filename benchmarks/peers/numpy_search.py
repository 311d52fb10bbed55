"""Exact search by NumPy, the baseline: `numpy_search.py MATERIAL`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from search_rows import Asked


def main() -> None:
    asked = Asked(sys.argv[1])

    def exact(query: Any, forbidden: Any = None) -> Any:
        scores = asked.vectors @ query
        if forbidden is not None:
            scores[forbidden] = -np.inf
        return np.argpartition(-scores, 10)[:10]

    asked.time("vector", "exact", "all", exact)
    for group, share in ((1, "40 %"), (2, "1 %")):
        hidden = asked.groups != group
        asked.time(f"vector, {share} visible", "exact", share, lambda query, hidden=hidden: exact(query, hidden))
    asked.report(build_seconds=0.0, bytes=asked.vectors.nbytes)


if __name__ == "__main__":
    main()
