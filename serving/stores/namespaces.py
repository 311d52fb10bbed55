"""Namespaces as vector stores that are only read: what sources hold is found without an upload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from parquetry import ids
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.search.service import Reader
from parquetry.serving.service import documents as shown
from parquetry.serving.service.resources import Resources
from parquetry.sources.uploads.identity import stored_file
from parquetry.storage.lake.lake import Lake
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.namespace_lists import NamespaceTotals, namespace_totals, page_by_time

PREFIX = "vs_ns_"
"""first characters of the id of such a store"""
FILE_PREFIX = "file-"
_ID_DIGITS = 24
_UUID = 36
"""characters of the id of a document"""


@contextmanager
def published(resources: Resources) -> Iterator[Reader | None]:
    """Yield the reader of the newest version; None if nothing was ever published, where nothing can be found.

    Raises:
        NotReady: something is published, and cannot be read yet.
    """
    if resources.follower.version is None:
        root = resources.settings.corpus.root
        if not Lake.exists(root) or not Lake(root).snapshot().version:
            yield None
            return
    with resources.follower.reader() as reader:
        yield reader


def store_id_of(namespace: str) -> str:
    """Return the id of a namespace as a vector store."""
    return f"{PREFIX}{ids.name_hash(namespace)[:_ID_DIGITS]}"


def namespace_stores(reader: Reader, principal: Principal) -> list[NamespaceTotals]:
    """Return the namespaces in which a principal sees a document."""
    if principal.namespaces == ():
        return []
    with closing(reader.index.session()) as session:
        return namespace_totals(session, filters_for(principal, None, Filters()))


def namespace_named(reader: Reader, principal: Principal, store_id: str) -> str | None:
    """Return the namespace with the id of a store; None if the principal sees none."""
    names = shown.namespaces(reader, principal) if principal.namespaces != () else []
    return next((name for name in names if store_id_of(name) == store_id), None)


def totals_of(reader: Reader, principal: Principal, store_id: str) -> NamespaceTotals | None:
    """Return the namespace with the id of a store, and its size; None if the principal sees none."""
    name = namespace_named(reader, principal, store_id)
    if name is None:
        return None
    with closing(reader.index.session()) as session:
        found = namespace_totals(session, filters_for(principal, name, Filters()))
    return found[0] if found else None


def file_id_of(document_id: str) -> str:
    """Return the id of a document as a file."""
    return f"{FILE_PREFIX}{document_id}"


def document_of(reader: Reader, principal: Principal, file_id: str, namespace: str | None = None) -> dict[str, Any]:
    """Return the row of a document by its id as a file.

    Raises:
        NotVisible: it does not exist for the principal.
    """
    document_id = file_id.removeprefix(FILE_PREFIX)
    if len(document_id) != _UUID or not file_id.startswith(FILE_PREFIX) or principal.namespaces == ():
        raise no_such_file(file_id)
    try:
        return shown.document(reader, principal, document_id, namespace)
    except NotVisible:
        raise no_such_file(file_id) from None


def page_of(
    reader: Reader,
    principal: Principal,
    namespace: str,
    limit: int,
    *,
    newest_first: bool,
    status: str | None,
    after: str | None,
    before: str | None,
) -> list[dict[str, Any]]:
    """Return the rows of documents of a namespace, in the order in which they came.

    Args:
        reader: reader of the newest version.
        principal: maker of the request.
        namespace: the namespace.
        limit: maximum number.
        newest_first: order.
        status: `completed` or `failed`; no document has another one.
        after: id of a file, behind which the page begins.
        before: id of a file, in front of which it ends.

    Raises:
        NotVisible: such a file does not exist for the principal.
    """
    bounds = {
        name: None if id_ is None else _place(document_of(reader, principal, id_, namespace))
        for name, id_ in (("after", after), ("before", before))
    }
    if status not in (None, "completed", "failed"):
        return []
    with closing(reader.index.session()) as session:
        return page_by_time(
            session,
            filters_for(principal, namespace, Filters()),
            limit,
            newest_first=newest_first,
            indexed=None if status is None else status == "completed",
            after=bounds["after"],
            before=bounds["before"],
        )


def file_id_of_hit(row: Mapping[str, Any], in_namespace: bool) -> str:
    """Return the id of the file of a hit: of the attached file in its store, else of the document."""
    attached = stored_file(str(row["path"]))
    if attached is None or in_namespace:
        return file_id_of(str(row["document_id"]))
    return attached[1]


def no_such_file(file_id: str) -> NotVisible:
    """Return the refusal for a file that does not exist, or not for the caller: one text for both."""
    return NotVisible("no-such-file", f"no file {file_id[:80]!r}")


def no_such_store(store_id: str) -> NotVisible:
    """Return the refusal for a store that does not exist, or not for the caller: one text for both."""
    return NotVisible("no-such-store", f"no vector store {store_id[:80]!r}")


def _place(row: Mapping[str, Any]) -> tuple[datetime, str]:
    return row["created_at"], row["document_id"]
