"""The search behind `file_search`: our vector stores, with the rights of the caller, in threads of its own."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import UnusableParameter
from parquetry.serving.responses.searching import FoundExcerpt
from parquetry.serving.responses.tools import FileSearch
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.attribute_filters import attribute_filter
from parquetry.serving.stores.search import StoreHit, search_stores
from parquetry.storage.search.attribute_conditions import AttributeFilter
from parquetry.storage.search.searcher import Hit

_THREADS = CapacityLimiter(8)


class FileSearcher:
    """Search of the stores that a tool names, for one caller.

    Args:
        resources: parts of the service.
        principal: the caller.
        tool: the tool.

    Raises:
        UnusableParameter: its filters cannot be used.
    """

    def __init__(self, resources: Resources, principal: Principal, tool: FileSearch) -> None:
        self._resources, self._principal, self._tool = resources, principal, tool
        self._filters = _filters(resources, tool)
        self.queries: list[str] = []
        """queries that were searched for"""
        self.hits: list[Hit] = []

    async def check(self) -> None:
        """Refuse stores that cannot be searched, before a model is asked.

        Raises:
            NotVisible: a store does not exist for the caller.
            UnusableParameter: a store is expired.
            ParquetryError: the stores cannot be read.
        """
        await run_sync(self._search, (), limiter=_THREADS)

    async def __call__(self, queries: Sequence[str]) -> Sequence[FoundExcerpt]:
        """Return the results of queries, best first.

        Raises:
            ParquetryError: the search failed, or the stores are gone.
        """
        found = await run_sync(self._search, queries, limiter=_THREADS)
        self.queries += queries
        self.hits += (each.hit for each in found)
        return [_excerpt(each) for each in found]

    def _search(self, queries: Sequence[str]) -> Sequence[StoreHit]:
        tool = self._tool
        return search_stores(
            self._resources,
            self._principal,
            tool.store_ids,
            queries,
            filters=self._filters,
            limit=tool.limit,
            score_threshold=tool.score_threshold,
        )


def _excerpt(hit: StoreHit) -> FoundExcerpt:
    return FoundExcerpt(hit.file_id, hit.filename, hit.score, "\n".join(hit.texts), hit.attributes)


def _filters(resources: Resources, tool: FileSearch) -> AttributeFilter | None:
    if not tool.filters:
        return None
    try:
        return attribute_filter(tool.filters.value, resources.settings.metadata_denylists.knowledge)
    except UnusableParameter as refused:
        # The filters of a tool stand in the list of tools.
        place = f"{tool.filters.place}{(refused.param or 'filters').removeprefix('filters')}"
        detail = refused.detail.replace(refused.param or "", place, 1)
        raise UnusableParameter(refused.reason, detail, place) from None
