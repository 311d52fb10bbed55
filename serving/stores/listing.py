"""Files and vector stores that exist for a caller, found and in pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import Forbidden, UnusableParameter
from parquetry.serving.access.visibility import demand_change
from parquetry.serving.files.model import KeptFile, Position, VectorStore, now, position_of
from parquetry.serving.service import documents as shown
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.attaching import follow
from parquetry.serving.stores.namespaces import (
    PREFIX,
    namespace_stores,
    no_such_file,
    no_such_store,
    published,
    store_id_of,
    totals_of,
)
from parquetry.storage.search.namespace_lists import NamespaceTotals

FILE_PREFIX, STORE_PREFIX = "file-", "vs_"
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class ListedStore:
    """A vector store, or a namespace, with the numbers of its files."""

    store: VectorStore | NamespaceTotals
    counts: Mapping[str, int]
    """files by status, and `usage_bytes`; empty for a namespace, which has its own"""


def file_named(resources: Resources, principal: Principal, file_id: str) -> KeptFile:
    """Return a file.

    Raises:
        NotVisible: it does not exist for the principal.
    """
    file = resources.files.get(principal, file_id)
    if file is None:
        raise no_such_file(file_id)
    return file


def store_named(resources: Resources, principal: Principal, store_id: str) -> VectorStore:
    """Return a store of files.

    Raises:
        NotVisible: it does not exist for the principal.
    """
    store = resources.stores.get(principal, store_id)
    if store is None:
        raise no_such_store(store_id)
    return store


def store_to_change(resources: Resources, principal: Principal, store_id: str, *, deleted: bool = False) -> VectorStore:
    """Return a store that a principal may change.

    Args:
        resources: parts of the service.
        principal: maker of the request.
        store_id: id of the store.
        deleted: return one that is being deleted, too.

    Raises:
        NotVisible: it does not exist for the principal.
        Forbidden: the principal may not change it, or it is a namespace.
    """
    if store_id.startswith(PREFIX):
        if namespace_totals_of(resources, principal, store_id) is None:
            raise no_such_store(store_id)
        raise Forbidden(
            "read-only-store", "this store is a namespace, whose files come from its sources; create one of your own"
        )
    store = resources.stores.get(principal, store_id, deleted=deleted)
    if store is None:
        raise no_such_store(store_id)
    demand_change(principal, store.namespace, store.access)
    return store


def store_to_fill(resources: Resources, principal: Principal, store_id: str) -> VectorStore:
    """Return a store that a principal may attach files to.

    Raises:
        UnusableParameter: it is expired.
        AccessRefused: as `store_to_change`.
    """
    store = store_to_change(resources, principal, store_id)
    if store.is_expired(now()):
        raise UnusableParameter(
            "store-expired", f"vector store {store_id} is expired; create another one", "vector_store_id"
        )
    return store


def namespace_totals_of(resources: Resources, principal: Principal, store_id: str) -> NamespaceTotals | None:
    """Return the namespace with the id of a store; None if the principal sees none."""
    with published(resources) as reader:
        return None if reader is None else totals_of(reader, principal, store_id)


def with_counts(resources: Resources, store: VectorStore) -> ListedStore:
    """Return a store with the numbers of its files as they are now."""
    follow(resources, store, resources.stores.in_work([store.id]))
    return ListedStore(store, resources.stores.counts([store.id]).get(store.id, {}))


def page_of_stores(
    resources: Resources, principal: Principal, limit: int, *, newest_first: bool, after: str | None, before: str | None
) -> tuple[list[ListedStore], bool]:
    """Return a page of the stores that exist for a principal, namespaces included, and whether there are more.

    Args:
        resources: parts of the service.
        principal: maker of the request.
        limit: maximum number.
        newest_first: order.
        after: id of a store, behind which the page begins.
        before: id of a store, in front of which it ends.

    Raises:
        UnusableParameter: `after` or `before` is no id of a store.
    """
    with published(resources) as reader:
        namespaces = [] if reader is None else namespace_stores(reader, principal)
    stores: list[VectorStore | NamespaceTotals] = [*resources.stores.list(principal), *namespaces]
    placed = sorted(((_place(store), store) for store in stores), key=lambda each: each[0], reverse=newest_first)
    places = {place[1]: place for place, _ in placed}
    for name, bound in (("after", after), ("before", before)):
        if bound is not None:
            place = places.get(bound) or _place_of_id(bound, name)
            beyond = (name == "after") == newest_first
            placed = [each for each in placed if (each[0] < place if beyond else each[0] > place)]
    page = placed[-limit:] if before is not None and after is None else placed[:limit]
    found = []
    for _, store in page:
        if isinstance(store, VectorStore):
            found.append(with_counts(resources, store))
        else:
            found.append(ListedStore(store, {}))
    return found, len(placed) > limit


def _place(store: VectorStore | NamespaceTotals) -> tuple[int, str]:
    if isinstance(store, VectorStore):
        return store.created_at, store.id
    return int(store.created_at.timestamp() * _US), store_id_of(store.namespace)


def _place_of_id(id: str, name: str) -> tuple[int, str]:
    place = cursor(id, STORE_PREFIX, name)
    return place.created_at, place.id


def cursor(id: str, prefix: str, name: str) -> Position:
    """Return the place of an id in a list.

    Raises:
        UnusableParameter: it is no such id.
    """
    place = position_of(id, prefix)
    if place is None:
        raise UnusableParameter("bad-cursor", f"{name}: {id[:80]!r} is not the id of an object of this list", name)
    return place


def bounds_of(resources: Resources, store: VectorStore, after: str | None, before: str | None) -> dict[str, int | None]:
    """Return the numbers of the files at the bounds of a page of a store's files.

    Raises:
        UnusableParameter: such a file was never in the store.
    """
    found: dict[str, int | None] = {}
    for name, file_id in (("after", after), ("before", before)):
        found[name] = None
        if file_id is not None:
            known = resources.stores.attachments(store.id, [file_id])
            if not known:
                problem = f"{name}: {file_id[:80]!r} is not the id of an object of this list"
                raise UnusableParameter("bad-cursor", problem, name)
            found[name] = known[0].number
    return found


def text_of(resources: Resources, principal: Principal, document_id: str, namespace: str) -> str:
    """Return the text of a published document.

    Raises:
        NotVisible: it is not published, or does not exist for the principal.
    """
    with published(resources) as reader:
        if reader is None:
            raise shown.no_such_document(document_id)
        return shown.text_of(reader, shown.document(reader, principal, document_id, namespace))
