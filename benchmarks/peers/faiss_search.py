"""Vector search by FAISS: `faiss_search.py MATERIAL`."""

from __future__ import annotations

import sys
import time
from typing import Any

import faiss
import numpy as np
from search_rows import Asked

NEAREST = 10
TRAINING_VECTORS = 100_000


def _flat(asked: Asked) -> None:
    flat = faiss.IndexFlatIP(asked.vectors.shape[1])
    flat.add(asked.vectors)
    asked.time("vector", "flat, exact", "all", lambda query: flat.search(query[None], NEAREST)[1][0])


def main() -> None:
    asked = Asked(sys.argv[1])
    count, dimension = asked.vectors.shape
    _flat(asked)
    lists = 2 ** round(np.log2(np.sqrt(count)))
    started = time.perf_counter()
    index = faiss.index_factory(dimension, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(asked.vectors[:TRAINING_VECTORS])
    index.add(asked.vectors)
    build = time.perf_counter() - started

    def search(query: Any, probes: int, allowed: Any = None) -> Any:
        chosen = faiss.IDSelectorBatch(allowed) if allowed is not None else None
        parameters = faiss.SearchParametersIVF(nprobe=probes, sel=chosen)
        return index.search(query[None], NEAREST, params=parameters)[1][0]

    for probes in (16, 64):
        setting = f"IVF{lists},SQ8, nprobe {probes}"
        asked.time("vector", setting, "all", lambda query, probes=probes: search(query, probes))
    for group, share in ((1, "40 %"), (2, "1 %")):
        allowed = np.flatnonzero(asked.groups == group)
        asked.time(
            f"vector, {share} visible",
            f"IVF{lists},SQ8, nprobe 64",
            share,
            lambda query, allowed=allowed: search(query, 64, allowed),
        )
    asked.report(build_seconds=round(build, 2), bytes=len(faiss.serialize_index(index)))


if __name__ == "__main__":
    main()
