"""Relevance of hits: the evidence for each is gathered, and weighed as it was calibrated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from parquetry.embed.base import Vectors
from parquetry.ranking.relevance import LOG_ODDS, Evidence, log_odds, relevance, reranked_relevance, words_evidence
from parquetry.ranking.relevance_files import bundled_words, calibrations_of
from parquetry.ranking.relevance_words import occurrences
from parquetry.storage.search.searcher import Hit, Searcher


def assessed(
    hits: Sequence[Hit],
    searcher: Searcher,
    vectors: Mapping[str, Vectors],
    calibration: str | None = None,
    reranker: str | None = None,
) -> list[Hit]:
    """Return hits with their relevance, in the same order.

    Args:
        hits: hits of the searcher's last search.
        searcher: the searcher.
        vectors: embedder id -> float32[dimension] of the query, as in that search; empty if it compared none.
        calibration: file of calibrations besides those of the package; None if there is none.
        reranker: id of the reranker that scored the hits, whose scores speak for them alone; None if none did.

    Raises:
        SettingsError: the file cannot be read, or is not one.
    """
    known, words = calibrations_of(calibration), bundled_words()
    if reranker is not None:
        curves = known.get(("reranker", reranker))
        return [
            replace(
                hit,
                relevance=reranked_relevance(hit.scores["rerank"], curves),
                evidence={LOG_ODDS: log_odds(hit.scores["rerank"])},
            )
            for hit in hits
        ]
    found = []
    for hit, (embedder, evidence) in zip(hits, evidence_of(hits, searcher, vectors), strict=True):
        told = relevance(evidence, known.get(("embedder", embedder)) if embedder else None, words)
        found.append(replace(hit, relevance=told, evidence=evidence.signals()))
    return found


def uncalibrated(embedders: Iterable[str], calibration: str | None, reranker: str | None = None) -> list[str]:
    """Return the models whose scores count as they are, because no calibration of theirs is known.

    Args:
        embedders: ids of those whose vectors were compared.
        calibration: as for `assessed`.
        reranker: as for `assessed`; if there is one, its scores alone count.
    """
    known = calibrations_of(calibration)
    if reranker is not None:
        return [] if ("reranker", reranker) in known else [reranker]
    return sorted(each for each in embedders if ("embedder", each) not in known)


def evidence_of(
    hits: Sequence[Hit], searcher: Searcher, vectors: Mapping[str, Vectors]
) -> list[tuple[str | None, Evidence]]:
    """Return the embedder and the evidence of each hit, as for `assessed`."""
    cosines = _cosines(hits, searcher, vectors)
    words: Sequence[tuple[float, ...]] = [()] * len(hits)
    if searcher.weights:
        found = occurrences([_content(hit) for hit in hits], searcher.weights.keys(), searcher.language)
        chunks, length = searcher.explanation.chunks, searcher.mean_length
        words = [words_evidence(searcher.weights, each, chunks, length) for each in found]
    return [(embedder, Evidence(cosine, *each)) for (embedder, cosine), each in zip(cosines, words, strict=True)]


def _cosines(
    hits: Sequence[Hit], searcher: Searcher, vectors: Mapping[str, Vectors]
) -> list[tuple[str | None, float | None]]:
    """Return the embedder and cosine similarity of each hit; those that the search did not compare take a statement."""
    if not vectors:
        return [(None, None)] * len(hits)
    # The scores of several embedders are ranks in a common list.
    only = next(iter(vectors)) if len(vectors) == 1 else None
    missing = [hit for hit in hits if only is None or "vector" not in hit.scores]
    computed = dict(zip(map(id, missing), searcher.cosines(missing, vectors), strict=True)) if missing else {}
    return [
        (computed[id(hit)] or (None, None)) if id(hit) in computed else (only, hit.scores["vector"]) for hit in hits
    ]


def _content(hit: Hit) -> str:
    """Return what the keyword side searches of a chunk: its text, and the headings that the text does not repeat."""
    text: str = hit.row["text"]
    return " ".join([*(heading for heading in hit.row["headings"] or () if heading not in text), text])
