"""Overhead of Prefect in a refresh: the same folder with and without it, and with one document per batch.

    python -m benchmarks.orchestration FOLDER

The difference between two runs with nothing to do is Prefect's start-up cost; the difference between many batches and
few, with and without Prefect, is its cost per batch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, wait_until_idle, write_result
from benchmarks.contestants import Contestant, parquetry

PACKAGES = ("parquetry", "prefect", "fastapi")
BATCHES = {"batches by size": 200, "a batch for each document": 1}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    documents = sum(1 for file in options.folder.rglob("*") if file.is_file())
    engines = {"direct": parquetry(direct=True), "prefect": parquetry(direct=False)}
    seconds: dict[str, dict[str, dict[str, list[float]]]] = {
        batches: {engine: {"full": [], "unchanged": []} for engine in engines} for batches in BATCHES
    }
    for _ in range(options.repetitions):
        for batches, size in BATCHES.items():
            for engine, contestant in engines.items():
                full, unchanged = _full_and_unchanged(contestant, size, options)
                seconds[batches][engine]["full"].append(full)
                seconds[batches][engine]["unchanged"].append(unchanged)
                print(f"{batches}, {engine}: full {full:.2f} s, unchanged {unchanged:.2f} s", flush=True)
    result = {
        "conditions": conditions(PACKAGES),
        "documents": documents,
        "wall_seconds": seconds,
        "overhead": overhead(seconds, documents),
    }
    print(result["overhead"])
    print(f"written to {write_result('orchestration', result, options.results)}")
    return result


def overhead(seconds: dict[str, dict[str, dict[str, list[float]]]], documents: int) -> dict[str, float]:
    """Return the seconds that Prefect adds to a run, and to a batch.

    Args:
        seconds: batching -> engine -> step -> wall seconds of each repetition.
        documents: documents in the folder; the number of batches if each has one document.
    """

    def added(batches: str, step: str) -> float:
        each = seconds[batches]
        return statistics.median(each["prefect"][step]) - statistics.median(each["direct"][step])

    few, many = BATCHES
    start = statistics.median([added(few, "unchanged"), added(many, "unchanged")])
    per_batch = (added(many, "full") - added(few, "full")) / max(1, documents - 1)
    return {"start_seconds": round(start, 3), "seconds_per_batch": round(per_batch, 4)}


def _full_and_unchanged(contestant: Contestant, size: int, options: argparse.Namespace) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="orchestration-benchmark-", dir=options.scratch) as scratch:
        (Path(scratch) / "parquetry.toml").write_text(f"[refresh]\nbatch_documents = {size}\n", "utf-8")
        walls = []
        for _ in ("full", "unchanged"):
            wait_until_idle(options.max_load)
            walls.append(contestant.refresh(options.folder.absolute(), Path(scratch)).measured.wall_seconds)
    return walls[0], walls[1]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orchestration")
    parser.add_argument("folder", type=Path, help="a folder of documents, some dozens")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--max-load", type=float, help="wait before each run until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where the corpora go")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
