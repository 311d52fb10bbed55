"""Retriever for LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any

from parquetry.errors import MissingExtra
from parquetry.integrations.places import metadata_of
from parquetry.serving.corpus import Corpus
from parquetry.serving.corpus_results import SearchOptions, SearchResult

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ImportError as error:
    raise MissingExtra("llamaindex", "the retriever for LlamaIndex") from error

__all__ = ["LlamaIndexRetriever"]
_FOR_PROGRAMS = ["span", "document_id", "chunk_id", "chunk_index", "relevance", "source_name"]
"""metadata that a model has no use for"""


class LlamaIndexRetriever(BaseRetriever):
    """Retriever over a corpus on disk or behind a service. Awaited, it searches in a thread.

    Args:
        corpus: the corpus.
        k: maximum number of nodes.
        options: further keyword arguments of `Corpus.search`: `mode`, `filters`, `min_relevance`, `level`, `rerank`,
            `context`.
    """

    def __init__(self, corpus: Corpus, k: int = 5, **options: Any) -> None:
        super().__init__()
        SearchOptions(k=k, **options)
        self._corpus, self._options = corpus, {"k": k, **options}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        results = self._corpus.search(query_bundle.query_str, **self._options)
        return [NodeWithScore(node=_node(each), score=each.relevance) for each in results]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(result: SearchResult) -> TextNode:
    metadata = metadata_of(result)
    return TextNode(
        id_=result.chunk_id,
        text=result.text,
        metadata=metadata,
        start_char_idx=result.row.get("start"),
        end_char_idx=result.row.get("end"),
        excluded_llm_metadata_keys=_FOR_PROGRAMS,
        excluded_embed_metadata_keys=list(metadata),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=result.document_id)},
    )
