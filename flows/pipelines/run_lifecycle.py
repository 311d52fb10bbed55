"""Start and end of every run: open sources and corpus, record the run, update the search index."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TypeVar

from parquetry.errors import (
    FilesGaveWay,
    IndexNotWritten,
    OutageError,
    ParquetryError,
    RefusedError,
    ServiceRefused,
    SettingsError,
    StorageError,
    TransientError,
)
from parquetry.llm.spending import Usage
from parquetry.masking import masked
from parquetry.model import Failure
from parquetry.planning.report import failures_by_reason
from parquetry.planning.rows import new_stamp
from parquetry.settings.sections import Settings
from parquetry.sources.registry import Scope, open_source
from parquetry.storage.files.full_disk import is_full
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread
from parquetry.tasks.documents.models import models_of
from parquetry.tasks.documents.run import Cancelled, Run

Result = TypeVar("Result")
_GIVEN_UP = (RefusedError, SettingsError, Cancelled, KeyboardInterrupt)
"""errors after which a run is recorded only if it left data behind"""
_ERROR_CHARACTERS = 2000
"""maximum number of characters stored of a run's error"""


def check_places(settings: Settings, scopes: Sequence[Scope]) -> None:
    """Check that sources and corpus can be opened, without creating anything.

    Raises:
        ParquetryError: as for `open_run`.
    """
    for scope in scopes:
        open_source(scope, settings.corpus.root)
    if Lake.exists(settings.corpus.root):
        Lake(settings.corpus.root)


def open_run(settings: Settings, scopes: Sequence[Scope], kind: str, *, reuse_vectors: bool = True) -> Run:
    """Start a run over some sources; a missing corpus is created only when there is something to store.

    Args:
        settings: settings of the corpus.
        scopes: scopes of the run.
        kind: kind of run, as in the table `runs`.
        reuse_vectors: True to reuse vectors of earlier runs by text hash.

    Raises:
        OutageError: an embedding service failed when asked for its vector length; the run is recorded.
        ParquetryError: a source or the corpus cannot be opened.
    """
    started = perf_counter()
    lake = Lake(settings.corpus.root, create=True, at_once=False, single_writer=settings.corpus.single_writer)
    run = Run(
        settings=settings,
        stamp=new_stamp(),
        lake=lake,
        base=lake.snapshot(),
        sources={(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes},
        scopes={(scope.namespace, scope.name): scope for scope in scopes},
        models={},
        reuse_vectors=reuse_vectors,
    )
    try:
        run.models = models_of(settings, (scope.namespace for scope in scopes))
    except (TransientError, ServiceRefused) as error:
        outage = OutageError(f"the embedding service cannot be asked how long its vectors are: {error}")
        record_failure(run, kind, perf_counter() - started, outage, {})
        raise outage from error
    return run


def from_newest(run: Run, read: Callable[[], Result]) -> Result:
    """Return the result of a read of the run's base version; of a newer version if its files were replaced."""

    def again() -> Result:
        try:
            return read()
        except FilesGaveWay:
            run.base = run.lake.snapshot()
            raise

    return reread(again)


def record(
    run: Run, kind: str, seconds: float, failures: Sequence[Failure], told: Mapping[str, object]
) -> tuple[str, ...]:
    """Record the run; a failure to do so does not undo what is published.

    Args:
        run: the run, after publishing.
        kind: kind of run, as in the table `runs`.
        seconds: duration of the run.
        failures: failures of the run, and those known from earlier runs.
        told: columns of `runs` specific to this kind of run.

    Returns:
        Errors of recording.
    """
    row = {**_row(run, kind, seconds), "failures_by_reason": json.dumps(failures_by_reason(failures)), **told}
    try:
        run.lake.record(row, [failure for failure in failures if not failure.known])
    except StorageError as error:
        if is_full(error):
            _make_room(run, error)
        return (str(error),)
    return ()


def record_failure(run: Run, kind: str, seconds: float, error: BaseException, told: Mapping[str, object]) -> None:
    """Record a run that published nothing, with its error, if the corpus is still writable.

    A first run that was refused or interrupted before it wrote or paid anything leaves nothing: an empty corpus would
    look like one in which nothing is found.

    Args:
        run: the run, after its end.
        kind: kind of run.
        seconds: duration.
        error: error that ended the run; gets a note if it cannot be recorded.
        told: columns of `runs` specific to this kind of run.
    """
    ended = {
        "status": "refused" if isinstance(error, RefusedError) else "failed",
        "version_after": run.base.version,
        "error": masked(f"{type(error).__name__}: {error}")[:_ERROR_CHARACTERS],
    }
    if is_full(error):
        _make_room(run, error)
    try:
        given_up = isinstance(error, _GIVEN_UP) and not told.get("cost_usd")
        if not given_up or run.lake.is_made or run.lake.orphans(run.base):
            run.lake.record({**_row(run, kind, seconds), **ended, **told}, [])
    except (ParquetryError, OSError) as unrecorded:
        if is_full(unrecorded):
            _make_room(run, error)
        error.add_note(f"the failed run could not be recorded either: {unrecorded}")


def _make_room(run: Run, error: BaseException) -> None:
    """Delete the files of a run that filled the disk, except vectors from a paid service."""
    paid = run.ledger.usage.get("embed", Usage()).calls > 0
    try:
        run.lake.discard(run.stamp.run_id, vectors=not paid)
    except (ParquetryError, OSError) as left:
        error.add_note(f"what the run had written could not be deleted: {left}")


def _row(run: Run, kind: str, seconds: float) -> dict[str, object]:
    return {
        "run_id": run.stamp.run_id,
        "kind": kind,
        "status": "completed",
        "started_at": run.stamp.at,
        "seconds": seconds,
        "namespaces": sorted({namespace for namespace, _ in run.sources}),
        "sources": sorted({name for _, name in run.sources}),
        "version_before": run.base.version,
    }


def refresh_index(run: Run) -> tuple[float, str | None]:
    """Update the search index to the published version; a failure does not undo what is published.

    Returns:
        Duration in seconds, and an error message with a remedy; None on success.
    """
    started = perf_counter()
    wrong: str | None = None
    try:
        reread(lambda: bring_index(run.lake.snapshot(), run.settings.search))
    except IndexNotWritten as error:
        wrong = str(error)
    except StorageError as error:
        wrong = f"{error}; the next search or refresh builds it"
    return perf_counter() - started, wrong
