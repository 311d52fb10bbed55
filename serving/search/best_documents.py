"""Documents ranked by their best chunks and their identities (docs/decisions/0057-documents-ranked.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from parquetry.embed.base import Vectors
from parquetry.storage.search.searcher import Hit, Mode, Searcher, fold

CHUNKS_PER_DOCUMENT = 4
"""chunks to fetch per requested document in the first round"""
SECOND_SHARE = 0.1
"""share of the score of a document's second-best chunk that is added to that of its best; chosen, as the next, on the
development sets, with no more than 0.005 lost on any (`benchmarks/results/document-level.json`)"""
IDENTITY_WEIGHT = 0.1
"""weight of a document's identity, as a share of the best among the documents found, beside the best chunk of all"""


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
    """Return the best chunk of each of the best documents, as `best_of_each` ranks them.

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
        best = best_of_each(hits, mode)
        found = fold(best) if folded else best
        if len(found) >= wanted or len(hits) < depth:
            return found[:wanted]
        depth *= CHUNKS_PER_DOCUMENT


def best_of_each(hits: Sequence[Hit], mode: Mode, looked: int | None = None) -> list[Hit]:
    """Return the best chunk of each document with the score of the document, best first.

    On the vector side, that is the score of the chunk. Otherwise the second-best chunk and the identity of the document
    add to it; the sum is divided by what it is for the best of all, so that its scale stays that of the chunks.

    Args:
        hits: chunks, best first.
        mode: search mode that ranked them.
        looked: number of the first of them that count for their documents; None for all. Documents whose best chunk is
            not among these come last.
    """
    chunks: dict[str, list[Hit]] = {}
    for hit in hits:
        chunks.setdefault(hit.row["document_id"], []).append(hit)
    if mode == "vector" or not hits:
        return [first for first, *_ in chunks.values()]
    counted = {id(hit) for hit in hits[:looked]}
    most = max((hit.identity or 0.0 for hit in hits[:looked]), default=0.0)
    found = []
    for first, *others in chunks.values():
        score = first.score
        if id(first) in counted:
            score += SECOND_SHARE * next((other.score for other in others if id(other) in counted), 0.0)
            identity = max(hit.identity or 0.0 for hit in (first, *others) if id(hit) in counted)
            score += IDENTITY_WEIGHT * hits[0].score * identity / most if most else 0.0
        found.append(replace(first, score=score / (1 + SECOND_SHARE + IDENTITY_WEIGHT)))
    return sorted(found, key=lambda hit: -hit.score)
