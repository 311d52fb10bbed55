"""Memory and processor time of `parquetry export` and `parquetry import` at several sizes.

    python -m benchmarks.exchange

Each command is a process of its own, over a synthetic corpus with vectors of 256 numbers. The dump of
`--format parquet` is imported into an empty corpus, with its search index.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, conditions, wait_until_idle, write_result
from benchmarks.process_tree import run_alone
from benchmarks.search_material import Material
from benchmarks.search_synthetic import synthetic

PACKAGES = ("parquetry", "duckdb", "numpy", "pyarrow", "deltalake")
SIZES = (50_000, 200_000)
FORMATS = ("duckdb", "parquet", "jsonl", "chroma", "llamaindex", "pgvector", "qdrant", "beir")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    rows = []
    for chunks in options.chunks or SIZES:
        with tempfile.TemporaryDirectory(prefix="parquetry-exchange-", dir=options.scratch) as scratch:
            rows += _measured(Path(scratch), chunks, options.max_load)
    result = {"conditions": conditions(PACKAGES), "commands": rows}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _measured(scratch: Path, chunks: int, max_load: float | None) -> list[dict[str, Any]]:
    corpus = _made(scratch / "made", chunks)
    rows = []
    for form in FORMATS:
        wait_until_idle(max_load)
        run = ("export", str(scratch / form), "--everything", "--format", form, "--corpus", str(corpus))
        rows.append({"command": f"export --format {form}", "chunks": chunks, **_run(run)})
        print(rows[-1], flush=True)
    wait_until_idle(max_load)
    dump = str(scratch / "parquet" / "chunks.parquet")
    run = ("import", dump, "--embedder", "wordllama", "--no-check", "--corpus", str(scratch / "again"))
    rows.append({"command": "import", "chunks": chunks, **_run(run)})
    print(rows[-1], flush=True)
    return rows


def _made(folder: Path, chunks: int) -> Path:
    """Create the corpus in a process of its own: a command would begin with the largest memory of this one."""
    maker = multiprocessing.get_context("spawn").Process(target=synthetic, args=(folder, chunks))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise RuntimeError(f"no corpus could be made: {maker.exitcode}")
    return Material(folder).root


def _run(command: Sequence[str]) -> dict[str, Any]:
    """Run a command; return its largest resident memory and its processor time."""
    load = os.getloadavg()[0]
    _, usage = run_alone([sys.executable, "-m", "parquetry.serving.cli.main", *command])
    return {
        "peak_rss_mb": round(usage.ru_maxrss * 1024 / 1e6, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "load_before": round(load, 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exchange")
    parser.add_argument("--chunks", type=int, action="append", help="number of chunks, a multiple of 10; repeatable")
    parser.add_argument("--scratch", type=Path, help="folder for corpora and dumps; default: the system's")
    parser.add_argument("--max-load", type=float, help="wait before each command until the load is below this")
    parser.add_argument("--name", default="exchange", help="of the file of results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
