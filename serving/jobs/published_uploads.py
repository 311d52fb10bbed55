"""Uploads beside the documents that they became."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.model import DocumentRow
from parquetry.planning.report import RunReport
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.write_outcomes import Key, Place
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.sources.uploads.store import Damaged
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread


def upload_at(context: JobContext, place: Place) -> Upload | None:
    """Return an upload; None if there is none that can be read."""
    try:
        return context.uploads.get(*place)
    except Damaged:
        return None


def published_rows(context: JobContext, keys: Iterable[Key]) -> dict[Key, DocumentRow]:
    """Return the current rows of documents."""
    wanted, root = set(keys), context.settings.corpus.root
    if not wanted or not Lake.exists(root):
        return {}
    namespaces = {namespace for namespace, _ in wanted}
    found = reread(lambda: CurrentRows(Lake(root).snapshot(), namespaces).named(document for _, document in wanted))
    return {key: row for row in found if (key := (row.namespace, row.document_id)) in wanted}


def published_uploads(context: JobContext, namespace: str | None) -> list[DocumentRow]:
    """Return the current rows of uploads: of one namespace, or of all."""
    root = context.settings.corpus.root
    if not Lake.exists(root):
        return []
    namespaces = None if namespace is None else [namespace]

    def found() -> list[DocumentRow]:
        return [row for row in CurrentRows(Lake(root).snapshot(), namespaces).each() if row.source == UPLOADS]

    return reread(found)


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
