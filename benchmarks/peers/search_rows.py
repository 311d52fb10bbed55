"""Timing of queries against a folder of material, for programs in any environment: needs only NumPy.

See `benchmarks/search_material.py` for the arrays.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np


class Asked:
    """The vectors of a corpus, and queries with their true answers."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.facts = json.loads((self.folder / "material.json").read_text("utf-8"))
        self.groups = np.load(self.folder / "groups.npy")
        self.queries = np.load(self.folder / "queries.npy")
        self.truth = dict(np.load(self.folder / "truth.npz"))
        self.rows: list[dict[str, Any]] = []

    @cached_property
    def vectors(self) -> Any:
        """Vectors of the corpus, read on first use because they take most of the memory."""
        return np.load(self.folder / "vectors.npy")

    def time(self, what: str, setting: str, truth: str, search: Callable[[Any], Sequence[int]]) -> None:
        """Time a search method, and measure its recall.

        Args:
            what: name of the row in the result.
            setting: settings of the program.
            truth: ground truth: `all` or a share.
            search: returns the numbers of 10 chunks for a query.
        """
        warm_up = self.facts["warm_up"]
        for query in self.queries[:warm_up]:
            search(query)
        seconds, processor, found = [], [], []
        for query, true in zip(self.queries[warm_up:], self.truth[truth][warm_up:], strict=True):
            started, begun = time.perf_counter(), time.process_time()
            numbers = search(query)
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - begun)
            found.append(len({int(number) for number in numbers} & set(true.tolist())) / len(true))
        self.rows.append(row(what, setting, seconds, processor, float(np.mean(found))))

    def report(self, **facts: Any) -> None:
        """Print all rows and facts as the last line of output."""
        json.dump({**facts, "rows": self.rows}, sys.stdout)
        print()


def row(
    what: str, setting: str, seconds: Sequence[float], processor: Sequence[float], recall: float | None
) -> dict[str, Any]:
    """Return one row of the result, in milliseconds.

    Args:
        what: name of the row.
        setting: settings of the program.
        seconds: duration of each search.
        processor: seconds of all processors in each search, which other processes change less than its duration.
        recall: mean share of the true answers that were found.
    """
    milliseconds = 1000 * np.array(seconds)
    return {
        "what": what,
        "setting": setting,
        "p50_ms": round(float(np.median(milliseconds)), 2),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 2),
        "processor_p50_ms": round(1000 * float(np.median(processor)), 2),
        "recall@10": None if recall is None else round(recall, 4),
        "ms": [round(float(each), 2) for each in milliseconds],
    }


def bytes_below(folder: Path) -> int:
    """Return the total size in bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
