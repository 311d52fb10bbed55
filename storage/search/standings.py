"""Places of one document on the sides of a search, however far down."""

from __future__ import annotations

from collections.abc import Mapping

from parquetry.storage.database import tuples
from parquetry.storage.search.searcher import Mode, Searcher
from parquetry.storage.search.visible_index import Vector


def standings(
    searcher: Searcher,
    query: str,
    vectors: Mapping[str, Vector],
    mode: Mode,
    document_id: str,
    *,
    context: str | None = None,
) -> dict[str, tuple[int, float]]:
    """Return the rank and score of a document's best chunk on each side that ranks it, among all visible chunks.

    Costs a comparison with every chunk, unlike a search.

    Args:
        searcher: searcher with the filters of the search.
        query: query as typed.
        vectors: id of an embedder -> float32[dimension] of the query.
        mode: which sides rank.
        document_id: id of a visible document.
        context: text that weighs in on the keyword side.

    Returns:
        Side -> rank, 1-based, and score.
    """
    revision = tuples(searcher.connection, "SELECT doc FROM parts.documents WHERE document_id = $1", [document_id])
    docs = {doc for (doc,) in revision}
    found = {}
    for side, lists in searcher.scored(query, vectors, mode, context=context).items():
        for scored in lists:
            own = [score for doc in docs for score in scored.scores[scored.docs == doc].tolist()]
            if own:
                best = max(own)
                found[side] = int((scored.scores > best).sum()) + 1, best
    return found
