"""Print the report of one run, for `parquetry history RUN`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from parquetry.planning.report import dollars
from parquetry.plural import counted
from parquetry.printing import tell, tell_wrapped
from parquetry.serving.cli.output import print_table, terminal_width
from parquetry.serving.search.run_reports import RecordedRun
from parquetry.serving.search.run_rows import counts_of

PARTS = ("fetch", "extract", "embed", "store")
"""stages that are summed over the batches of `process`"""


def print_run(run: RecordedRun) -> None:
    """Print the report of a run."""
    row = run.row
    versions = f"version {row['version_before']} -> {row['version_after']}"
    if row["version_before"] == row["version_after"]:
        versions = f"nothing published, still version {row['version_after']}"
    _echo(f"Run {row['run_id']}: {row['kind']}, {row['status']}, {versions}.")
    of = f" of {', '.join(row['sources'])}" if row["sources"] else ""
    _echo(f"Started {row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {row['seconds']:.1f} s{of}.")
    if counts := counts_of(row):
        _echo(f"{row['scanned'] or 0} scanned: {counts}.")
    for name, count in run.failures_by_reason.items():
        _echo(f"  {count} x {name}")
    if row["tokens"] or row["cost_usd"]:
        _echo(f"{counted(row['tokens'] or 0, 'token')}, {dollars(row['cost_usd'])}.")
    if row["error"]:
        _echo(f"Error: {row['error']}")
    if run.seconds_by_stage:
        tell()
        print_table(("stage", "seconds", ""), _stages(run.seconds_by_stage))
    if run.slowest:
        tell()
        print_table(
            ("slowest documents", "source", "stage", "seconds"),
            [
                (each["uri"] or each["document_id"], each["source"], each["stage"], f"{each['seconds']:.2f}")
                for each in run.slowest
            ],
            width=100,
        )


def _stages(seconds: Mapping[str, float]) -> Iterable[tuple[Any, ...]]:
    for name, taken in seconds.items():
        yield name, f"{taken:.2f}", "of process, summed over batches" if name in PARTS else ""


def _echo(text: str) -> None:
    tell_wrapped(text, terminal_width(), hanging="  ", long_words=False)
