"""Candidate counts for two-stage vector search, compared for Hamming distances that weight bits differently.

    python -m benchmarks.candidates [FOLDER]

Without a folder: clustered synthetic vectors. With a folder: chunks of its PDFs, embedded by the bundled embedder;
queries are eight consecutive words taken from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.conditions import RESULTS, conditions, write_result
from benchmarks.embedder import chunks_of
from benchmarks.search_synthetic import clusters
from parquetry.storage.index.signatures import rotation

KEPT = (100, 300, 400, 500, 1000, 2000)
TRUE = (10, 100)
QUERIES = 100
PACKAGES = ("parquetry", "numpy", "wordllama")
Matrix = npt.NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    rng = np.random.default_rng(0)
    vectors, queries = _synthetic(rng, options.chunks) if options.folder is None else _real(rng, options)
    scores = queries @ vectors.T
    turn = rotation(vectors.shape[1]).T
    ways = {
        "all bits, not rotated": _nearness(vectors, queries, 1, 1),
        "all bits": _nearness(vectors @ turn, queries @ turn, 1, 1),
        "large ones threefold": _nearness(vectors @ turn, queries @ turn, 1, 3),
        "large ones only": _nearness(vectors @ turn, queries @ turn, 0, 1),
    }
    recall = {name: {kept: _recall(nearness, scores, kept) for kept in KEPT} for name, nearness in ways.items()}
    for name, found in recall.items():
        print(f"{name:<22}", "  ".join(f"{kept}: {' '.join(map(str, each.values()))}" for kept, each in found.items()))
    corpus = "synthetic" if options.folder is None else options.folder.name
    result = {"conditions": conditions(PACKAGES), "corpus": corpus, "chunks": len(vectors), "recall": recall}
    print(f"written to {write_result(f'candidates-{corpus}', result, options.results)}")
    return result


def _nearness(vectors: Matrix, queries: Matrix, small: float, large: float) -> Matrix:
    """Return the negative weighted Hamming distance of sign bits, up to a constant: float32[queries, vectors].

    Args:
        vectors: float32[n, dimension].
        queries: float32[m, dimension].
        small: weight of a bit if the query's magnitude there is below its median.
        large: weight of the other bits.
    """
    magnitude = np.abs(queries)
    weights = np.where(magnitude >= np.median(magnitude, axis=1, keepdims=True), large, small)
    asked = np.where(queries > 0, weights, -weights)
    return (asked.astype(np.float32) @ np.where(vectors > 0, np.float32(1), np.float32(-1)).T).astype(np.float32)


def _recall(nearness: Matrix, scores: Matrix, kept: int) -> dict[str, float]:
    """Return the shares of the 10 and 100 nearest vectors among the first `kept` candidates."""
    candidates = np.argpartition(-nearness, min(kept, nearness.shape[1] - 1), axis=1)[:, :kept]
    found = {}
    for count in TRUE:
        true = np.argpartition(-scores, count, axis=1)[:, :count]
        shares = [len(np.intersect1d(one, other)) / count for one, other in zip(true, candidates, strict=True)]
        found[f"@{count}"] = round(float(np.mean(shares)), 3)
    return found


def _synthetic(rng: np.random.Generator, chunks: int) -> tuple[Matrix, Matrix]:
    drawn = clusters(rng, max(20, chunks // 500))(chunks + QUERIES)
    return drawn[QUERIES:], drawn[:QUERIES]


def _real(rng: np.random.Generator, options: argparse.Namespace) -> tuple[Matrix, Matrix]:
    from parquetry.embed.wordllama import WordLlamaEmbedder
    from parquetry.settings.embedding import EmbeddingSettings

    embedder = WordLlamaEmbedder(EmbeddingSettings())
    chunks = [chunk for chunk in chunks_of(options.folder, options.chunks) if len(chunk.split()) > 8]
    phrases = []
    for number in rng.choice(len(chunks), min(QUERIES, len(chunks)), replace=False):
        words = chunks[number].split()
        start = int(rng.integers(len(words) - 8))
        phrases.append(" ".join(words[start : start + 8]))
    queries = np.stack([embedder.embed_query(phrase) for phrase in phrases])
    vectors = embedder.embed(chunks).vectors
    return vectors[vectors.any(axis=1)], queries[queries.any(axis=1)]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.candidates", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", help="a folder of PDFs")
    parser.add_argument("--chunks", type=int, default=50_000, help="most to compare")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
