"""Several documents at once: which of them a caller may change, and the jobs that change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from parquetry.errors import BrokenDocument
from parquetry.model import Access
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.access.visibility import demand_change, filters_for
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.set_aside import UNDO_SECONDS, SetAside
from parquetry.serving.jobs.table import Removal, now
from parquetry.serving.jobs.withdrawing import change_of, handed_in
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import submit
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import Damaged
from parquetry.storage.search.document_browsing import rows_of_ids
from parquetry.storage.search.filters import Filters

MOST_SELECTED = 10_000
"""documents that are changed together"""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SelectedDocuments:
    """Documents that were selected."""

    rows: tuple[Row, ...]
    """those that the caller may change, by name"""
    forbidden: int
    """number of those that it sees, and may not change"""


def may_change(principal: Principal, row: Row) -> bool:
    """Return True if a principal may change a document that it sees."""
    try:
        demand_change(principal, row["namespace"], access_of(row))
    except AccessRefused:
        return False
    return True


def access_of(row: Row) -> Access:
    """Return who may see a document."""
    return Access(row["visibility"], row["org_id"], row["user_id"], tuple(row["tags"] or ()))


def selection(resources: Resources, principal: Principal, document_ids: Sequence[str]) -> SelectedDocuments:
    """Return the documents with some ids; those that the principal does not see are left out."""
    with resources.follower.reader() as reader, closing(reader.index.session()) as session:
        found = rows_of_ids(session, filters_for(principal, None, Filters()), document_ids)
    rows = tuple(row for row in found if may_change(principal, row))
    return SelectedDocuments(rows, len(found) - len(rows))


def remove(resources: Resources, principal: Principal, rows: Sequence[Row]) -> list[Job]:
    """Remove documents, so that it can be undone for a while; return the jobs, one for each namespace."""

    def payload(rows: Sequence[Row]) -> dict[str, Any]:
        # An upload that was handed in again since, and is not published yet, stays.
        documents = [
            {
                "namespace": row["namespace"],
                "document_id": row["document_id"],
                "etag": row["etag"] if row["source"] == UPLOADS else None,
                "name": row["filename"],
            }
            for row in rows
        ]
        return {"documents": documents, "undo": True}

    return _by_namespace(rows, lambda space, some: submit(resources, principal, "remove", space, payload(some)))


def read_again(resources: Resources, principal: Principal, rows: Sequence[Row]) -> list[Job]:
    """Read documents again from where they come from; return the jobs, one for each namespace."""

    def ask(namespace: str, some: Sequence[Row]) -> Job:
        return submit(resources, principal, "reindex", namespace, {"documents": [row["document_id"] for row in some]})

    return _by_namespace(rows, ask)


def retag(
    resources: Resources, principal: Principal, rows: Sequence[Row], tag: str, *, add: bool
) -> tuple[list[Job], int]:
    """Add a tag to uploads, or take it from them.

    Args:
        resources: parts of the service.
        principal: who asks.
        rows: documents; those of other sources are left out, because their tags come from there.
        tag: the tag.
        add: False to take it away.

    Returns:
        The jobs that publish this, one for each namespace, and the number of changed documents.
    """
    changed: list[tuple[str, dict[str, Any]]] = []
    for row in rows:
        with suppress(Damaged, BrokenDocument):
            upload = resources.uploads.get(row["namespace"], row["path"]) if row["source"] == UPLOADS else None
            if upload is not None and (tag in upload.access.tags) is not add:
                tags = (*(each for each in upload.access.tags if each != tag), *((tag,) if add else ()))
                changed.append((upload.namespace, _with_tags(resources, upload, tags)))
    jobs = []
    for namespace in sorted({space for space, _ in changed}):
        uploads = [named for space, named in changed if space == namespace]
        jobs.append(submit(resources, principal, "ingest", namespace, {"uploads": uploads}))
    return jobs, len(changed)


def _with_tags(resources: Resources, upload: Upload, tags: Sequence[str]) -> dict[str, Any]:
    content = resources.uploads.read(upload)
    tagged, changed = resources.uploads.put(
        upload.namespace,
        None,
        content,
        filename=upload.filename,
        content_type=upload.content_type,
        metadata=upload.metadata,
        access=replace(upload.access, tags=tuple(tags)),
        uploaded_by=upload.uploaded_by,
        kind=upload.kind,
        url=upload.url,
        path=upload.path,
        chunk_size=upload.chunk_size,
        describe=upload.describe,
    )
    if changed:
        SetAside(resources.state).keep(change_of(tagged), upload, content)
    return handed_in(tagged, changed=changed, replaces=True)


def _by_namespace(rows: Sequence[Row], ask: Callable[[str, Sequence[Row]], Job]) -> list[Job]:
    spaces = sorted({row["namespace"] for row in rows})
    return [ask(space, [row for row in rows if row["namespace"] == space]) for space in spaces]


def undoable(resources: Resources, principal: Principal) -> list[Removal]:
    """Return the removals of a principal that can be undone, the newest first."""
    if principal.sees_everything:
        owner: dict[str, str | None] = {}
    elif principal.user_id is not None:
        owner = {"user_id": principal.user_id}
    else:
        owner = {"token_id": principal.token_id or "anonymous"}
    found = resources.jobs.removals(owner, now() - UNDO_SECONDS * 1_000_000)
    return [each for each in found if principal.sees(each.namespace or "")]


def undo_until(removal: Removal) -> datetime:
    """Return the time until which a removal can be undone."""
    return datetime.fromtimestamp(removal.finished_at / 1_000_000 + UNDO_SECONDS, UTC)
