"""Uploads as they are kept, and runs that publish them so."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.published_rows import Place
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.sources.uploads.store import Damaged


def upload_at(context: JobContext, place: Place) -> Upload | None:
    """Return an upload; None if there is none that can be read."""
    try:
        return context.uploads.get(*place)
    except Damaged:
        return None


def refresh_uploads(context: JobContext, places: Collection[Place], engine: StoppableEngine) -> RunReport | None:
    """Publish uploads as they are now; None if there are none to look at."""
    if not places:
        return None
    scopes = tuple(_scopes(context, places))
    request = Request(context.settings, scopes=scopes, allow_removals=True)
    return run_refresh(request, engine, Observer())


def _scopes(context: JobContext, places: Collection[Place]) -> Iterator[Scope]:
    """Yield a scope of each namespace, with its uploads."""
    for namespace in sorted({namespace for namespace, _ in places}):
        paths = (path for space, path in places if space == namespace)
        yield scope_of_uploads(context.settings, namespace, *paths)
