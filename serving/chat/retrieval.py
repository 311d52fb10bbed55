"""Retrieval for chats: what is searched, for whom, in threads that are not those of other searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from parquetry.embed.registry import calls_service
from parquetry.errors import SettingsError
from parquetry.serving.access.principals import Principal, no_such_namespace
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.chat.agents import ChatAgent, both
from parquetry.serving.chat.options import RagOptions
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import SearchRequest
from parquetry.serving.service.request_filters import filters_of
from parquetry.serving.service.resources import Resources
from parquetry.storage.database import rows, sql_string
from parquetry.storage.search.filters import TYPED_PATH, Filters, select_visible
from parquetry.storage.search.searcher import Hit, Mode

T = TypeVar("T")
TOP_K = 3
"""chunks in a context, unless a request or an agent says otherwise"""
LONGEST_QUERY = 32_768
"""characters of a message that are searched for"""
SEARCHES, WAITING_SEARCHES = 2, 32
_THREADS = CapacityLimiter(SEARCHES)
"""threads of searches: one of them runs Python at a time, and further ones hold up each other and all streams; see
docs/decisions/0059-chats-search-two-at-a-time.md"""
_WAITING_THREADS = CapacityLimiter(WAITING_SEARCHES)
"""threads of searches that may wait for a service: one that embeds, or a reranker"""


@dataclass(frozen=True, slots=True)
class ChatScope:
    """Documents that a chat may use, and the way of searching them."""

    filters: Filters
    """conditions of the caller, the agent and the request"""
    top_k: int = TOP_K
    mode: Mode = "hybrid"
    rerank: bool = False
    may_read: bool = True
    """True if the caller may read whole documents"""

    @property
    def namespace(self) -> str | None:
        """The one namespace; None if there are several."""
        return self.filters.namespaces[0] if len(self.filters.namespaces) == 1 else None


def scope_of(
    resources: Resources,
    principal: Principal,
    options: RagOptions,
    agent: ChatAgent | None,
    namespace: Callable[[], str],
) -> ChatScope:
    """Return what a request may use.

    Args:
        resources: parts of the service.
        principal: maker of the request.
        options: fields of the request.
        agent: agent that is asked; None for a model.
        namespace: returns the namespace of a request to a model, or to an agent without any.

    Raises:
        NotVisible: the namespace does not exist for the principal, or not for the agent.
        SettingsError: a filter is not valid.
    """
    denylists = resources.settings.metadata_denylists
    filters = Filters() if options.rag_filters is None else filters_of(options.rag_filters, denylists=denylists)
    has_reranker = resources.settings.search.rerank is not None
    top_k, mode, rerank = options.rag_top_k, options.rag_mode, options.rag_rerank
    if agent is not None:
        filters = both(agent.filters, filters)
        settings = agent.settings
        top_k = settings.top_k if top_k is None else top_k
        mode = settings.mode if mode is None else mode
        rerank = settings.rerank if rerank is None else rerank
    if agent is not None and agent.settings.namespaces:
        names = agent.namespaces(principal)
        asked = options.rag_namespace
        if asked is not None and asked not in names:
            raise no_such_namespace(asked)
        filters = filters_for(principal, None, replace(filters, namespaces=names if asked is None else (asked,)))
    else:
        filters = filters_for(principal, namespace(), filters)
    return ChatScope(
        filters,
        TOP_K if top_k is None else top_k,
        mode or "hybrid",
        has_reranker if rerank is None else rerank,
        principal.may("read"),
    )


async def search(
    resources: Resources, scope: ChatScope, query: str, context: str | None = None, top_k: int | None = None
) -> tuple[Hit, ...]:
    """Return the chunks for a query, best first.

    Raises:
        ParquetryError: the search failed; no result is never an error in disguise.
    """
    request = SearchRequest(
        query[:LONGEST_QUERY],
        mode=scope.mode,
        k=scope.top_k if top_k is None else top_k,
        filters=scope.filters,
        look=Reranking(rerank=scope.rerank),
        context=None if context is None else context[-LONGEST_QUERY:],
    )

    def searched() -> tuple[Hit, ...]:
        with resources.follower.reader() as reader:
            return reader.search(request).hits

    waits = scope.rerank or any(calls_service(name) for name in resources.settings.embedders)
    return await run_sync(searched, limiter=_WAITING_THREADS if waits else _THREADS)


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that reads the corpus for a chat."""
    return await run_sync(function, *arguments, limiter=_THREADS)


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document with its text."""

    document_id: str
    filename: str
    path: str
    text: str


def read_document(resources: Resources, scope: ChatScope, name: str, known: Sequence[str] = ()) -> ShownDocument | None:
    """Return the document that a name stands for, of those in the scope; None if there is none.

    Args:
        resources: parts of the service.
        scope: documents that may be read.
        name: id, path within its source, `source/path`, or file name.
        known: ids of documents that are meant rather than others of the same name.

    Raises:
        SettingsError: the name stands for several; it names their ids.
    """
    if not name or not name.isprintable():
        return None
    wanted = sql_string(name)
    names = f"document_id, path, source || '/' || path, {TYPED_PATH}, filename"
    relation = f"(SELECT * FROM published WHERE {wanted} IN ({names}))"
    with resources.follower.reader() as reader:
        with closing(reader.index.session()) as session:
            select_visible(session, scope.filters, relation, ("document_id",), "named")
            found = rows(session, "SELECT * FROM published WHERE document_id IN (SELECT document_id FROM named)")
        meant = _meant(found, name, known)
        if not meant:
            return None
        if len(meant) > 1:
            ids = ", ".join(sorted(row["document_id"] for row in meant)[:5])
            raise SettingsError(f"several documents have the name {name[:80]!r}; read one by its id: {ids}")
        (row,) = meant
        text = reader.texts([row["document_id"]]).get(row["document_id"], "")
    return ShownDocument(row["document_id"], str(row["filename"] or row["path"]), row["path"], text)


def _meant(found: Sequence[dict[str, Any]], name: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """Return the documents that a name means: the first form of a name with a match decides."""
    forms = (
        [row for row in found if row["document_id"] == name],
        [row for row in found if row["document_id"] in known and name in (row["path"], row["filename"])],
        [row for row in found if row["path"] == name],
        list(found),
    )
    return next((those for those in forms if those), [])
