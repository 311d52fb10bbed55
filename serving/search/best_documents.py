"""Documents ranked by their best chunk."""

from __future__ import annotations

from collections.abc import Mapping

from parquetry.embed.base import Vectors
from parquetry.storage.search.searcher import Hit, Mode, Searcher, fold

CHUNKS_PER_DOCUMENT = 4
"""chunks to fetch per requested document in the first round"""


def best_of_documents(
    searcher: Searcher,
    query: str,
    vectors: Mapping[str, Vectors],
    mode: Mode,
    wanted: int,
    *,
    folded: bool,
    context: str | None = None,
) -> list[Hit]:
    """Return the best chunk of each of the best documents; a document ranks by its best chunk.

    Args:
        searcher: searcher with the filters of the search.
        query: query text.
        vectors: embedder id -> float32[dimension] of the query.
        mode: search mode.
        wanted: number of documents.
        folded: True to fold documents with the same best chunk into one hit that names the others.
        context: text whose words weigh in on the keyword side.
    """
    depth = wanted * CHUNKS_PER_DOCUMENT
    while True:
        hits = searcher.search(query, vectors, mode, depth, context=context)
        best: dict[str, Hit] = {}
        for hit in hits:
            best.setdefault(hit.row["document_id"], hit)
        found = fold(list(best.values())) if folded else list(best.values())
        if len(found) >= wanted or len(hits) < depth:
            return found[:wanted]
        depth *= CHUNKS_PER_DOCUMENT
