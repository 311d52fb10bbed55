"""A refresh in the process of the caller, without Prefect: what `parquetry.refresh` and `parquetry.plan` are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.documents import Request, plan_only, run_refresh
from parquetry.flows.pipelines.silent import Silent
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
    """Bring a corpus up to date with its sources, and publish.

    Extraction processes are started: a script needs `if __name__ == "__main__":` around the call.

    Args:
        settings: the settings, or their file; None as the command line.
        targets: names of sources, folders or files; none for all sources.
        namespace: one part of the corpus; None for all.
        allow_removals: agree to the removal of any number of documents.

    Returns:
        Counts, and every document that was not indexed with its reason; `as_json()` as `parquetry refresh --json`.

    Raises:
        OutageError: a service or store failed; what was good is published.
        RefusedError: a guard or the budget held a source back; the others are published.
        IndexNotWritten: all is published, and the search index could not follow.
        ParquetryError: nothing was published.
    """
    report = run_refresh(_request(settings, targets, namespace, allow_removals), DirectEngine(), Silent())
    if report.error is not None:
        raise report.error
    return report


def plan(
    settings: Settings | str | os.PathLike[str] | None = None,
    *targets: str,
    namespace: str | None = None,
    allow_removals: bool = False,
) -> RefreshPlan:
    """List the sources and tell what a refresh would do and cost; write and spend nothing.

    Args:
        settings: as `refresh`.
        targets: as `refresh`.
        namespace: as `refresh`.
        allow_removals: as `refresh`.

    Raises:
        ParquetryError: as `refresh`.
    """
    return plan_only(_request(settings, targets, namespace, allow_removals))


def _request(
    settings: Settings | str | os.PathLike[str] | None, targets: tuple[str, ...], namespace: str | None, allow: bool
) -> Request:
    known = settings if isinstance(settings, Settings) else load_settings(settings)
    return Request(known, targets, namespace, allow)
