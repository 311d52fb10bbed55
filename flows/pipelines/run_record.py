"""Record runs in the table `runs`, successful or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from parquetry.errors import OutageError, ParquetryError, RefusedError, RunSuspended, SettingsError, StorageError
from parquetry.llm.spending import Usage
from parquetry.masking import masked
from parquetry.planning.report import RunReport, failures_by_reason
from parquetry.planning.slowest import SlowItem, slowest_column, stages_column
from parquetry.storage.files.full_disk import is_full
from parquetry.storage.lake.discarding import discard_files
from parquetry.tasks.context import RunContext
from parquetry.tasks.engine.base import Cancelled

if TYPE_CHECKING:
    from parquetry.sessions.report import SessionsReport

Report = TypeVar("Report", RunReport, "SessionsReport")
_GIVEN_UP = (RefusedError, SettingsError, Cancelled, KeyboardInterrupt)
"""errors after which a run is recorded only if it left data behind"""
_STATUS: Mapping[type, str] = {OutageError: "failed", RefusedError: "refused", RunSuspended: "suspended"}
"""status in `runs` of a run that published, by the error of its report"""
_ERROR_CHARACTERS = 2000
"""maximum number of characters stored of a run's error"""


def record(run: RunContext, kind: str, report: Report, columns: Mapping[str, object]) -> tuple[str, ...]:
    """Record a run that published; a failure to do so does not undo what is published.

    Args:
        run: the run, after publishing.
        kind: kind of run, as in the table `runs`.
        report: report of the run.
        columns: columns of `runs` specific to this kind of run.

    Returns:
        Errors of recording.
    """
    row = {
        **_row(run, kind, report.seconds),
        "status": _STATUS.get(type(report.error), "completed"),
        "version_after": report.version,
        "error": "; ".join(report.problems) or None,
        "failures_by_reason": json.dumps(failures_by_reason(report.failures)),
        **time_columns(report.seconds_by_stage, report.slowest),
        **columns,
    }
    try:
        run.lake.record(row, [failure for failure in report.failures if not failure.known])
    except StorageError as error:
        if is_full(error):
            _make_room(run, error)
        return (str(error),)
    return ()


def record_failure(
    run: RunContext, kind: str, seconds: float, error: BaseException, columns: Mapping[str, object]
) -> None:
    """Record a run that published nothing, with its error, if the corpus is still writable.

    A first run that was refused or interrupted before it wrote or paid anything leaves nothing: an empty corpus would
    look like one in which nothing is found.

    Args:
        run: the run, after its end.
        kind: kind of run.
        seconds: duration.
        error: error that ended the run; gets a note if it cannot be recorded.
        columns: columns of `runs` specific to this kind of run.
    """
    ended = {
        "status": "refused" if isinstance(error, RefusedError) else "failed",
        "version_after": run.base.version,
        "error": masked(f"{type(error).__name__}: {error}")[:_ERROR_CHARACTERS],
    }
    if is_full(error):
        _make_room(run, error)
    try:
        paid = columns.get("cost_usd") or columns.get("tokens")
        given_up = isinstance(error, _GIVEN_UP) and not paid
        if not given_up or run.lake.is_made or run.lake.orphans(run.base):
            run.lake.record({**_row(run, kind, seconds), **ended, **columns}, [])
    except (ParquetryError, OSError) as unrecorded:
        if is_full(unrecorded):
            _make_room(run, error)
        error.add_note(f"the failed run could not be recorded either: {unrecorded}")


def time_columns(seconds: Mapping[str, float], slowest: Sequence[SlowItem]) -> dict[str, object]:
    """Return the columns of `runs` that say where the time went."""
    return {"seconds_by_stage": stages_column(seconds), "slowest": slowest_column(slowest)}


def _make_room(run: RunContext, error: BaseException) -> None:
    """Delete the files of a run that filled the disk, except vectors from a paid service."""
    paid = run.ledger.usage.get("embed", Usage()).calls > 0
    try:
        discard_files(run.lake, run.stamp.run_id, vectors=not paid)
    except (ParquetryError, OSError) as left:
        error.add_note(f"what the run had written could not be deleted: {left}")


def _row(run: RunContext, kind: str, seconds: float) -> dict[str, object]:
    return {
        "run_id": run.stamp.run_id,
        "kind": kind,
        "started_at": run.stamp.at,
        "seconds": seconds,
        "namespaces": sorted({namespace for namespace, _ in run.sources}),
        "sources": sorted({name for _, name in run.sources}),
        "version_before": run.base.version,
    }
