"""Retriever for LangChain."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import ConfigDict

from parquetry.errors import MissingExtra
from parquetry.integrations.places import metadata_of
from parquetry.serving.corpus import Corpus
from parquetry.serving.corpus_results import Level, Mode
from parquetry.storage.search.filters import Filters

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtra("langchain", "the retriever for LangChain") from error

__all__ = ["LangChainRetriever"]
_OPTIONS = ("k", "mode", "filters", "min_relevance", "level", "rerank", "context")
"""keyword arguments of `Corpus.search`, which are fields of the retriever"""


class LangChainRetriever(BaseRetriever):
    """Retriever over a corpus on disk or behind a service; every option can be given to one `invoke`, too.

    Awaited, it searches in a thread.
    """

    # An option that is misspelt would otherwise be ignored.
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    corpus: Corpus
    k: int = 5
    """maximum number of documents"""
    mode: Mode = "hybrid"
    filters: Filters | None = None
    min_relevance: float | None = None
    """0 to 1; leaves out what is less likely to answer"""
    level: Level = "chunk"
    rerank: bool = False
    context: str | None = None
    """earlier turns, or another text that weighs in"""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - nothing inside reports to it
        **options: Any,
    ) -> list[Document]:
        return self._found(query, options)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - the same
        **options: Any,
    ) -> list[Document]:
        return await asyncio.to_thread(self._found, query, options)

    def _found(self, query: str, options: dict[str, Any]) -> list[Document]:
        results = self.corpus.search(query, **({name: getattr(self, name) for name in _OPTIONS} | options))
        return [Document(each.text, id=each.chunk_id, metadata=metadata_of(each)) for each in results]
