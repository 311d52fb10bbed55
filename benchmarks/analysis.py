"""Time, processor time and memory of `parquetry analyze` over corpora of growing size, whole and after an addition.

    python -m benchmarks.analysis [--documents 10000 50000 100000]

The corpora are those of `benchmarks.dashboard`, without an index. Each analysis is a process of its own. The share of
similar pairs that divisions into groups find is measured on 5,000 documents, each compared with all others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import conditions, write_result
from benchmarks.dashboard import write
from parquetry.analysis.one_thread import one_thread
from parquetry.analysis.similar_vectors import similar_pairs
from parquetry.planning.rows import RunStamp
from parquetry.storage.analysis.facts import read_facts
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot

RESULT = "analysis"
_PACKAGES = ("parquetry", "numpy", "scikit-learn", "duckdb")
_SAMPLE = 5_000
_ADDED = 100
"""documents that come before the analysis is repeated"""
_CHILD = """
import json, resource, sys, time
from parquetry.settings.sections import parse_settings
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.lake.lake import Lake
parts, begun, used = {}, time.perf_counter(), time.process_time()
def look(stage):
    parts.setdefault(stage, [time.perf_counter() - begun, time.process_time() - used])
settings = parse_settings({"corpus": {"root": sys.argv[1]}}, "benchmark")
done = analyze(Lake(sys.argv[1]).snapshot(), settings.search, look=look)
told = {
    "seconds": round(time.perf_counter() - begun, 1), "processor_seconds": round(time.process_time() - used, 1),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    "parts_begin": {name: [round(each, 1) for each in at] for name, at in parts.items()},
    "documents": done.documents, "duplicates": done.duplicates, "near_duplicates": done.near_duplicates,
    "placed": done.placed,
}
print(json.dumps(told))
"""


def analyzed(root: Path) -> dict[str, Any]:
    """Analyze a corpus in a process of its own; return its figures."""
    load = os.getloadavg()
    done = subprocess.run([sys.executable, "-c", _CHILD, str(root)], check=True, capture_output=True, text=True)
    return {"load_before": load, **json.loads(done.stdout.splitlines()[-1])}


def recall(root: Path) -> dict[str, Any]:
    """Return the share of the similar pairs of some documents that an analysis of all finds."""
    with connect_snapshot(Lake(str(root)).snapshot()) as connection:
        vectors = read_facts(connection).vectors
    some = np.sort(np.random.default_rng(2).choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False))
    with one_thread():
        exact, found = set(similar_pairs(vectors, some)), set(similar_pairs(vectors))
    return {"compared": len(some), "pairs": len(exact), "recall": round(len(exact & found) / len(exact), 4)}


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 50_000, 100_000])
    asked = parser.parse_args()
    for documents in asked.documents:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "corpus"
            write(root, documents)
            whole = analyzed(root)
            write(root, _ADDED, RunStamp("change", datetime(2031, 3, 2, tzinfo=UTC)), seed=1)
            found = {"whole": whole, "after_addition": analyzed(root), "similar": recall(root)}
        print(documents, json.dumps(found, indent=1), flush=True)
        told = {**conditions(_PACKAGES), "load_after": os.getloadavg(), "added": _ADDED, **found}
        print(write_result(f"{RESULT}-{documents}", told))


if __name__ == "__main__":
    main()
