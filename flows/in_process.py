"""`parquetry.refresh` and `parquetry.plan`: a refresh in the caller's process, without Prefect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.documents import Request, plan_only, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.settings.sections import Settings, load_settings
from parquetry.tasks.engine.base import DirectEngine

if TYPE_CHECKING:
    from parquetry.planning.report import RunReport
    from parquetry.tasks.documents.plan import RefreshPlan


def refresh(
    settings: Settings | str | os.PathLike[str] | None = None,
    *targets: str,
    namespace: str | None = None,
    allow_removals: bool = False,
) -> RunReport:
    """Update a corpus from its sources, and publish.

    Documents are read in processes of their own, which do not import the calling script.

    Args:
        settings: settings or their file; None for the command line's default.
        targets: names of sources, folders or files; none for all sources.
        namespace: only this namespace of the corpus; None for all.
        allow_removals: True to allow the removal of any number of documents.

    Returns:
        Counts, and the documents not indexed with reasons; `as_json()` gives the JSON of `parquetry refresh --json`.

    Raises:
        OutageError: a service or store failed; unaffected documents are published.
        RefusedError: a guard or the budget stopped a source; the others are published.
        IndexNotWritten: everything is published, but the search index could not be updated.
        RunSuspended: documents wait for a batch at a service; the others are published.
        ParquetryError: nothing was published.
    """
    report = run_refresh(_request(settings, targets, namespace, allow_removals), DirectEngine(), Observer())
    if report.error is not None:
        raise report.error
    return report


def plan(
    settings: Settings | str | os.PathLike[str] | None = None,
    *targets: str,
    namespace: str | None = None,
    allow_removals: bool = False,
) -> RefreshPlan:
    """List the sources, and return what a refresh would do and cost. Write and spend nothing.

    Args:
        settings: as in `refresh`.
        targets: as in `refresh`.
        namespace: as in `refresh`.
        allow_removals: as in `refresh`.

    Raises:
        ParquetryError: as in `refresh`.
    """
    return plan_only(_request(settings, targets, namespace, allow_removals))


def _request(
    settings: Settings | str | os.PathLike[str] | None, targets: tuple[str, ...], namespace: str | None, allow: bool
) -> Request:
    known = settings if isinstance(settings, Settings) else load_settings(settings)
    return Request(known, targets, namespace, allow)
