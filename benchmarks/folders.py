"""Refresh of mixed folders: documents by outcome, time, and memory of all processes.

python -m benchmarks.folders FOLDER...
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, wait_until_idle, write_result
from benchmarks.process_tree import measure

PACKAGES = ("parquetry", "pypdfium2", "rapidocr", "onnxruntime", "duckdb", "deltalake")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    steps = {}
    with tempfile.TemporaryDirectory(prefix="folders-benchmark-", dir=options.scratch) as scratch:
        for step in ("full", "unchanged"):
            wait_until_idle(options.max_load)
            steps[step] = _refresh(options.folder, Path(scratch))
            told = {key: value for key, value in steps[step].items() if key != "reasons"}
            print(f"{step}: {told}", flush=True)
    result = {"conditions": conditions(PACKAGES), "folders": [folder.name for folder in options.folder], "steps": steps}
    print(f"written to {write_result('folders', result, options.results)}")
    return result


def _refresh(folders: Sequence[Path], scratch: Path) -> dict[str, Any]:
    program = [
        sys.executable,
        "-c",
        "from parquetry.serving.cli.main import main; main()",
        "refresh",
        "--direct",
        "--json",
    ]
    places = [str(folder.absolute()) for folder in folders]
    measured = measure([*program, *places, "--corpus", str(scratch / "corpus")], scratch)
    report = json.loads(measured.output)
    return {
        "exit_code": measured.exit_code,
        "documents": report["documents"],
        "chunks": report["chunks"],
        "reasons": Counter(f"{each['status']} {each['stage']}/{each['reason']}" for each in report["failures"]),
        "wall_seconds": measured.wall_seconds,
        "processor_seconds": measured.processor_seconds,
        "peak_pss_mb": measured.peak_pss_mb,
        "load_before": measured.load_before,
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="folders of documents of any kind")
    parser.add_argument("--max-load", type=float, help="wait before each run until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where the corpus goes")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
