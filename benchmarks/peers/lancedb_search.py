"""Vector search by LanceDB with its IVF_PQ index: `lancedb_search.py MATERIAL`."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from search_rows import Asked, bytes_below

NEAREST = 10


def main() -> None:
    asked = Asked(sys.argv[1])
    count, dimension = asked.vectors.shape
    folder = asked.folder / "lancedb"
    shutil.rmtree(folder, ignore_errors=True)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(asked.vectors.ravel()), dimension)
    data = pa.table({"id": pa.array(np.arange(count)), "visible_to": pa.array(asked.groups), "vector": vectors})
    started = time.perf_counter()
    table = lancedb.connect(folder).create_table("chunks", data)
    load = time.perf_counter() - started
    partitions = 2 ** round(np.log2(np.sqrt(count)))
    started = time.perf_counter()
    table.create_index(metric="cosine", num_partitions=partitions, num_sub_vectors=dimension // 4)
    build = time.perf_counter() - started
    started = time.perf_counter()
    table.create_scalar_index("visible_to", index_type="BITMAP")
    scalar = time.perf_counter() - started

    def search(query: Any, probes: int, refine: int, group: int | None = None) -> list[int]:
        asking = table.search(query).distance_type("cosine").limit(NEAREST).nprobes(probes).refine_factor(refine)
        if group is not None:
            asking = asking.where(f"visible_to = {group}", prefilter=True)
        return list(asking.select(["id"]).to_arrow()["id"].to_pylist())

    for probes, refine in ((20, 10), (64, 10)):
        setting = f"IVF_PQ, {partitions} partitions, nprobes {probes}, refine {refine}"
        asked.time("vector", setting, "all", lambda query, p=probes, r=refine: search(query, p, r))
    for group, share in ((1, "40 %"), (2, "1 %")):
        asked.time(
            f"vector, {share} visible",
            f"IVF_PQ, {partitions} partitions, nprobes 64, refine 10, prefilter",
            share,
            lambda query, group=group: search(query, 64, 10, group),
        )
    asked.report(
        load_seconds=round(load, 2),
        build_seconds=round(build, 2),
        filter_index_seconds=round(scalar, 2),
        bytes=bytes_below(folder),
    )


if __name__ == "__main__":
    main()
