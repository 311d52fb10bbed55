"""Cost of syncing a publish to disk before it is reported: refreshes with and without waiting for the disk.

    python -m benchmarks.durability [--documents 1 100 5000] [--rounds 5] [--name durability]

Documents are generated, a few sentences each. A refresh without waiting runs the same code with a no-op sync.
Both are timed alternately, in this process, into separate corpora.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.conditions import conditions, wait_until_idle, write_result
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "deltalake", "duckdb", "pyarrow")
WORDS = ("oak", "elm", "ash", "fir", "plane", "blade", "glue", "order", "hall", "leave", "sign", "dry")


class Waits:
    """Count and duration of syncs."""

    def __init__(self, real: Callable[[int], None] | None) -> None:
        self._real = real
        self.count = 0
        self.seconds = 0.0

    def __call__(self, descriptor: int) -> None:
        started = time.perf_counter()
        if self._real is not None:
            self._real(descriptor)
        self.count += 1
        self.seconds += time.perf_counter() - started


@contextmanager
def waiting(*, really: bool) -> Iterator[Waits]:
    """Count every sync, and perform it only if `really`."""
    waits = Waits(os.fsync if really else None)
    with mock.patch("os.fsync", waits):
        yield waits


def write_documents(folder: Path, count: int, first: int) -> None:
    """Write new documents."""
    for number in range(first, first + count):
        said = " ".join(WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(60))
        (folder / f"{number}.md").write_text(f"# Document {number}\n\n{said.capitalize()} {number}.\n")


def refresh_once(folder: Path, corpus: Path, *, really: bool) -> tuple[float, Waits]:
    """Refresh a corpus; return the seconds and the syncs."""
    settings = parse_settings(
        {"corpus": {"root": str(corpus)}, "source": [{"name": "docs", "uri": str(folder)}]}, "benchmark"
    )
    with waiting(really=really) as waits:
        started = time.perf_counter()
        run_refresh(Request(settings), DirectEngine(), Observer())
        return time.perf_counter() - started, waits


def measure(documents: int, rounds: int) -> dict[str, Any]:
    """Time refreshes with the same number of new documents each, alternately with and without waiting."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    waits = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "docs"
        folder.mkdir()
        corpora = {really: Path(place) / f"corpus-{really}" for really in seconds}
        for each in range(rounds + 1):
            write_documents(folder, documents, each * documents)
            for really, corpus in corpora.items():
                taken, waited = refresh_once(folder, corpus, really=really)
                # The first refresh creates the tables and loads the model.
                if each:
                    seconds[really].append(taken)
                    if really:
                        waits.append(waited)
    return {
        "documents": documents,
        "rounds": rounds,
        "seconds": round(statistics.median(seconds[True]), 3),
        "seconds_without_waiting": round(statistics.median(seconds[False]), 3),
        "syncs": statistics.median(each.count for each in waits),
        "seconds_in_syncs": round(statistics.median(each.seconds for each in waits), 4),
    }


def main() -> None:
    """Run the benchmark and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1, 100, 5000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-load", type=float, default=None)
    parser.add_argument("--name", default="durability")
    given = parser.parse_args()
    wait_until_idle(given.max_load)
    result = {"conditions": conditions(PACKAGES), "load_before": os.getloadavg()[0]}
    result["refreshes"] = [measure(count, given.rounds if count < 1000 else 2) for count in given.documents]
    print(json.dumps(result, indent=1))
    print(f"written to {write_result(given.name, result)}")


if __name__ == "__main__":
    main()
