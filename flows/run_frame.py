"""What every run begins and ends with: sources and corpus opened, a row in `runs`, the search index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import perf_counter

from knowledge.errors import ParquetryError, StorageError
from knowledge.masking import masked
from knowledge.model import Failure
from knowledge.report import failures_by_reason
from knowledge.rows import new_stamp
from knowledge.settings import Settings
from knowledge.sources.registry import Scope, open_source
from storage.index import IndexFolder
from storage.lake import Lake
from tasks.models import models_of
from tasks.run import Run

_ERROR_CHARACTERS = 2000
"""of what ended a run, that are kept"""


def check_places(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Find out whether sources and corpus can be opened, without making anything.

    Raises:
        ParquetryError: as `open_run`.
    """
    for scope in scopes:
        open_source(scope, settings.corpus.root)
    if Lake.exists(settings.corpus.root):
        Lake(settings.corpus.root)


def open_run(settings: Settings, scopes: Sequence[Scope], *, reuse_vectors: bool = True) -> Run:
    """A run over some sources, which begins now; a corpus that is not there is made.

    Args:
        settings: of the corpus.
        scopes: what the run is about.
        reuse_vectors: take vectors of earlier runs by text hash.

    Raises:
        ParquetryError: a source or the corpus cannot be opened.
    """
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    return Run(
        settings=settings,
        stamp=new_stamp(),
        lake=lake,
        base=lake.snapshot(),
        sources={(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes},
        scopes={(scope.namespace, scope.name): scope for scope in scopes},
        models=models_of(settings, (scope.namespace for scope in scopes)),
        reuse_vectors=reuse_vectors,
    )


def record(
    run: Run, kind: str, seconds: float, failures: Sequence[Failure], told: Mapping[str, object]
) -> tuple[str, ...]:
    """Leave a row that tells what a run did; a run that cannot be recorded has published all the same.

    Args:
        run: that has published.
        kind: of run.
        seconds: that it took.
        failures: of it, and those that are known from earlier runs.
        told: columns of `runs` that only this kind of run can fill.

    Returns:
        What went wrong.
    """
    row = {**_row(run, kind, seconds), "failures_by_reason": json.dumps(failures_by_reason(failures)), **told}
    try:
        run.lake.record(row, [failure for failure in failures if not failure.known])
    except StorageError as error:
        return (str(error),)
    return ()


def record_failure(run: Run, kind: str, seconds: float, error: BaseException, told: Mapping[str, object]) -> None:
    """Leave a row that tells why a run published nothing, if the corpus can still be written at all.

    Args:
        run: that has ended.
        kind: of run.
        seconds: that it took.
        error: that ended it; gets a note if it cannot be recorded.
        told: columns of `runs` that only this kind of run can fill.
    """
    ended = {
        "status": "failed",
        "version_after": run.base.version,
        "error": masked(f"{type(error).__name__}: {error}")[:_ERROR_CHARACTERS],
    }
    try:
        run.lake.record({**_row(run, kind, seconds), **ended, **told}, [])
    except (ParquetryError, OSError) as unrecorded:
        error.add_note(f"the failed run could not be recorded either: {unrecorded}")


def _row(run: Run, kind: str, seconds: float) -> dict[str, object]:
    return {
        "run_id": run.stamp.run_id,
        "kind": kind,
        "status": "completed",
        "started_at": run.stamp.at,
        "seconds": seconds,
        "namespaces": sorted({namespace for namespace, _ in run.sources}),
        "version_before": run.base.version,
    }


def refresh_index(run: Run) -> tuple[float, tuple[str, ...]]:
    """Bring the search index to the published version; a run whose index fails has published all the same.

    Returns:
        Seconds that it took, and what went wrong.
    """
    started = perf_counter()
    warnings: tuple[str, ...] = ()
    try:
        snapshot = run.lake.snapshot()
        IndexFolder(snapshot.layout, run.settings.search).refresh(snapshot)
    except StorageError as error:
        warnings = (f"search index: {error}; the next search tries again",)
    return perf_counter() - started, warnings
