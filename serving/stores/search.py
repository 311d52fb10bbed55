"""Search in vector stores: a search with filters, in one ranking over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import UnusableParameter
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.files.model import now
from parquetry.serving.search.merging import best_places
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.attribute_filters import attributes_of
from parquetry.serving.stores.namespaces import PREFIX, file_id_of_hit, namespace_named, no_such_store, published
from parquetry.sources.uploads.identity import store_folder
from parquetry.storage.search.attribute_conditions import AttributeFilter, AttributeValue
from parquetry.storage.search.filters import Filters, Subset
from parquetry.storage.search.searcher import Hit, fold

_ROUNDING = 5e-7
"""largest difference of a score that is shown"""
MOST_RESULTS = 200
"""maximum number of results of a search, all pages together"""


@dataclass(frozen=True, slots=True)
class StoreHit:
    """A chunk of a file that was found in a vector store."""

    file_id: str
    filename: str
    score: float
    """relevance, 0 to 1"""
    attributes: dict[str, AttributeValue]
    texts: tuple[str, ...]
    hit: Hit
    """as the search returned it"""


def search_stores(
    resources: Resources,
    principal: Principal,
    store_ids: Sequence[str],
    queries: Sequence[str],
    *,
    filters: AttributeFilter | None = None,
    limit: int = 10,
    score_threshold: float | None = None,
    rerank: bool | None = None,
) -> list[StoreHit]:
    """Return the chunks in vector stores that answer any of some queries, best first.

    Args:
        resources: parts of the service.
        principal: maker of the request.
        store_ids: the stores.
        queries: the queries; a chunk counts with its best score.
        filters: condition on the attributes of files.
        limit: maximum number of results.
        score_threshold: relevance below which results are left out, 0 to 1.
        rerank: True to rerank, False not to; None to do so if a reranker is configured.

    Raises:
        NotVisible: a store does not exist for the principal.
        UnusableParameter: a store is expired.
        SettingsError: no reranker is configured.
        StorageError: the corpus or the stores cannot be read.
    """
    principal.demand("search")
    with published(resources) as reader:
        subsets = tuple(dict.fromkeys(_subsets(resources, principal, reader, store_ids)))
        own = [store_id for store_id in store_ids if not store_id.startswith(PREFIX)]
        if own:
            resources.stores.touch(own)
        if reader is None or not subsets or not queries:
            return []
        names = tuple(dict.fromkeys(subset.namespace for subset in subsets))
        allowed = filters_for(principal, None, Filters(namespaces=names, subsets=subsets, attributes=filters))
        look = Reranking(rerank=resources.settings.search.rerank is not None if rerank is None else rerank)
        least = None if not score_threshold else score_threshold - _ROUNDING
        asked = [
            SearchRequest(query, k=limit, filters=allowed, look=look, min_relevance=least)
            for query in dict.fromkeys(queries)
        ]
        found = [response.hits for response in reader.search_all(asked)]
    whole = {subset.namespace for subset in subsets if subset.folder is None}
    denied = resources.settings.metadata_denylists.knowledge
    return [_shown(hit, whole, denied) for hit in _best(found, limit)]


def check_stores(resources: Resources, principal: Principal, store_ids: Sequence[str]) -> None:
    """Check that stores can be searched, before a language model is asked for their sake.

    Raises:
        NotVisible: a store does not exist for the principal.
        UnusableParameter: a store is expired.
        StorageError: the corpus or the stores cannot be read.
    """
    principal.demand("search")
    with published(resources) as reader:
        list(_subsets(resources, principal, reader, store_ids))


def _subsets(
    resources: Resources, principal: Principal, reader: Reader | None, store_ids: Sequence[str]
) -> Iterable[Subset]:
    for store_id in store_ids:
        if store_id.startswith(PREFIX):
            namespace = None if reader is None else namespace_named(reader, principal, store_id)
            if namespace is None:
                raise no_such_store(store_id)
            yield Subset(namespace)
            continue
        store = resources.stores.get(principal, store_id)
        if store is None:
            raise no_such_store(store_id)
        if store.is_expired(now()):
            raise UnusableParameter(
                "store-expired", f"vector store {store_id} is expired; create another one", "vector_store_id"
            )
        yield Subset(store.namespace, store_folder(store_id))


def _best(lists: Sequence[Sequence[Hit]], limit: int) -> Sequence[Hit]:
    """Return the hits of several queries once each, with their best relevance, best first; equal texts are one."""
    if len(lists) == 1:
        return lists[0]
    # Of a file in two stores, each query may have found another copy.
    return fold([lists[query][rank] for query, rank in best_places(lists)])[:limit]


def _shown(hit: Hit, whole: Iterable[str], denied: Sequence[str]) -> StoreHit:
    row = hit.row
    return StoreHit(
        file_id_of_hit(row, row["namespace"] in whole),
        row["filename"],
        round(hit.relevance or 0.0, 6),
        attributes_of(row["metadata"], denied),
        (row["text"],),
        hit,
    )
