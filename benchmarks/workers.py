"""Throughput of a refresh by the number of its workers: processes of Dask that ask a slow embedding service.

    python -m benchmarks.workers

Each batch waits for one request, as with a real service; the processors of this machine are little used. Measured are
the batches after the first of each worker, because a worker starts for many seconds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from parquetry.flows.local import run_on_prefect
from parquetry.flows.pipelines.documents import Request
from parquetry.flows.pipelines.observer import Observer
from parquetry.settings.sections import parse_settings
from parquetry.tasks.documents.batch_report import BatchReport
from tests.servers import embedding_server

PACKAGES = ("parquetry", "prefect", "prefect-dask", "distributed")
BATCH_DOCUMENTS = 4


class Clock(Observer):
    """Notes when batches end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def batch_done(self, report: BatchReport) -> None:  # noqa: ARG002 - only its time counts
        self.ends.append(time.monotonic())


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)

    def answer(request: embedding_server.Request) -> embedding_server.Reply:
        time.sleep(options.latency)
        return embedding_server.embeddings(request)

    rows = []
    with embedding_server.EmbeddingServer(answer) as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workers in options.workers:
            rows.append(_measured(folder, server.url, workers, options.batches))
            print(rows[-1], flush=True)
    result = {"conditions": conditions(PACKAGES), "latency_seconds": options.latency, "rows": rows}
    write_result("workers", result, options.results) if options.results else write_result("workers", result)
    return result


def _measured(folder: Path, url: str, workers: int, batches: int) -> dict[str, Any]:
    documents = folder / f"docs-{workers}"
    documents.mkdir()
    for number in range(batches * BATCH_DOCUMENTS):
        (documents / f"{number:04}.md").write_text(
            f"# Rule {number}\n\nCount the boards of {workers} {number} times.\n"
        )
    settings = parse_settings(
        {
            "corpus": {"root": str(folder / f"corpus-{workers}"), "embedder": "openai:test"},
            "embedding": {"base_url": url, "api_key": "key", "dimension": 8},
            "extraction": {"workers": 1},
            "refresh": {"batch_documents": BATCH_DOCUMENTS, "workers": workers},
            "run": {"task_runner": "dask"},
            "source": [{"name": "docs", "uri": str(documents)}],
        },
        "benchmark",
    )
    clock, load, started = Clock(), os.getloadavg()[0], time.monotonic()
    report = run_on_prefect(Request(settings), clock, verbose=False)
    ends = sorted(clock.ends)
    steady = ends[-1] - ends[workers - 1]
    return {
        "workers": workers,
        "documents": report.documents.added,
        "seconds": round(time.monotonic() - started, 1),
        "seconds_after_first_batches": round(steady, 2),
        "batches_per_second": round((len(ends) - workers) / steady, 3),
        "load_before": round(load, 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--latency", type=float, default=5.0, help="seconds for which the service takes a request")
    parser.add_argument("--results", type=Path, help="folder of the result; default: benchmarks/results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
