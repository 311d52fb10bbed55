"""The search index after a publish."""

from __future__ import annotations

from time import perf_counter

from knowledge.errors import StorageError
from storage.index import IndexFolder
from tasks.run import Run


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
