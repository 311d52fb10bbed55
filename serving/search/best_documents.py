"""Documents ranked by their best chunk."""

from __future__ import annotations

from collections.abc import Mapping

from parquetry.embed.base import Vectors
from parquetry.storage.search.searcher import Hit, Mode, Searcher, fold

_CHUNKS_PER_DOCUMENT = 4
"""chunks to look at for each document that is asked for, at first"""


def best_of_documents(
    searcher: Searcher, query: str, vectors: Mapping[str, Vectors], mode: Mode, wanted: int, *, folded: bool
) -> list[Hit]:
    """The best chunk of each of the best documents: a document is as good as its best chunk.

    Args:
        searcher: with the filters of the search.
        query: what is asked.
        vectors: id of an embedder -> float32[dimension] of the query.
        mode: what is compared.
        wanted: documents.
        folded: of documents with the same best chunk, one is a hit that names the others.
    """
    depth = wanted * _CHUNKS_PER_DOCUMENT
    while True:
        hits = searcher.search(query, vectors, mode, depth)
        best: dict[str, Hit] = {}
        for hit in hits:
            best.setdefault(hit.row["document_id"], hit)
        found = fold(list(best.values())) if folded else list(best.values())
        if len(found) >= wanted or len(hits) < depth:
            return found[:wanted]
        depth *= _CHUNKS_PER_DOCUMENT
