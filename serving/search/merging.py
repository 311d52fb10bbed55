"""Results of several queries as one list."""

from __future__ import annotations

from collections.abc import Sequence

from parquetry.storage.search.searcher import Hit, fold


def best_places(lists: Sequence[Sequence[Hit]], *, documents: bool = False) -> list[tuple[int, int]]:
    """Return the places of the hits of several queries in one list, each once, best first.

    A hit counts with its best relevance, which means the same for every query. Of the same relevance, as 0 or 1, the
    one that is further in front for its query comes first.

    Args:
        lists: hits of each query, best first.
        documents: True for lists of documents, which stand once by whichever of their chunks.

    Returns:
        Pairs of the number of a query and the rank of a hit in its list, both 0-based.
    """
    key = "document_id" if documents else "chunk_id"
    best: dict[str, tuple[float, int, int]] = {}
    for query, hits in enumerate(lists):
        for rank, hit in enumerate(hits):
            place = (-(hit.relevance or 0.0), rank, query)
            best[hit.row[key]] = min(place, best.get(hit.row[key], place))
    return [(query, rank) for _, rank, query in sorted(best.values())]


def distinct_places(lists: Sequence[Sequence[Hit]], *, documents: bool = False) -> list[tuple[int, int]]:
    """Return places as `best_places` does; of equal texts, of which queries may have found other copies, the first."""
    places = best_places(lists, documents=documents)
    kept = {hit.row["chunk_id"] for hit in fold([lists[query][rank] for query, rank in places])}
    return [(query, rank) for query, rank in places if lists[query][rank].row["chunk_id"] in kept]
