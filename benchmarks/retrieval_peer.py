"""Search quality of the usual combination: a sentence transformer and plain BM25, fused by reciprocal ranks.

    python -m benchmarks.retrieval_peer CRANFIELD VASWANI TAU2_BANKING --embedder onnx:FOLDER

Each collection is a folder in BEIR format. Documents are whole, title first, and cut where the model cuts them.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.conditions import conditions, write_result
from benchmarks.retrieval_sweep import Ranked, best
from parquetry.embed.registry import open_embedder
from parquetry.language.stems import stop_words
from parquetry.ranking.evaluation import Dataset, measure, read_dataset
from parquetry.ranking.fusion import reciprocal_rank
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.storage.index.words import stems_of

PACKAGES = ("parquetry", "onnxruntime", "tokenizers", "PyStemmer", "numpy")
LANGUAGE = "english"
K1, B = 1.2, 0.75
RRF_K = 60
DEPTH = 100
"""documents of each side that are fused"""
Scores = npt.NDArray[np.floating]
"""float[queries, documents]"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    measured = {}
    for folder in options.datasets:
        dataset = read_dataset(folder)
        lists = {
            "vector": [best(cosines, depth=DEPTH) for cosines in _cosines(dataset, options.embedder)],
            "text": [best(scores, above=0.0, depth=DEPTH) for scores in _bm25(dataset)],
        }
        lists["hybrid"] = [
            reciprocal_rank(*sides, weight=0.5, k=RRF_K) for sides in zip(lists["vector"], lists["text"], strict=True)
        ]
        measured[dataset.name] = {mode: _ndcg(dataset, ranked) for mode, ranked in lists.items()}
        print(dataset.name, measured[dataset.name], flush=True)
    result = {"conditions": conditions(PACKAGES), "k1": K1, "b": B, "rrf_k": RRF_K, "depth": DEPTH, "ndcg": measured}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _texts(dataset: Dataset) -> list[str]:
    return [f"{document.title} {document.text}".strip() for document in dataset.documents]


def _cosines(dataset: Dataset, name: str) -> Scores:
    embedder = open_embedder(name, EmbeddingSettings())
    documents = embedder.embed(_texts(dataset)).vectors
    queries = np.asarray(embedder.embed_queries(list(dataset.queries.values())), np.float32)
    return queries @ documents.T


def _bm25(dataset: Dataset) -> Scores:
    counts = [Counter(_stems(text)) for text in _texts(dataset)]
    lengths = np.array([held.total() for held in counts], np.float64)
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, held in enumerate(counts):
        for stem, times in held.items():
            postings[stem].append((place, times))
    found = np.zeros((len(dataset.queries), len(counts)))
    for scores, query in zip(found, dataset.queries.values(), strict=True):
        for stem in _stems(query):
            if held_by := postings.get(stem):
                places, times = np.array(held_by).T
                rarity = math.log(1 + (len(counts) - len(places) + 0.5) / (len(places) + 0.5))
                scores[places] += rarity * times * (K1 + 1) / (times + norms[places])
    return found


def _stems(text: str) -> list[str]:
    kept = [word for word in re.findall(r"\w+", text.lower()) if word not in stop_words(LANGUAGE)]
    return stems_of(kept, LANGUAGE) if kept else []


def _ndcg(dataset: Dataset, lists: Sequence[Ranked]) -> float:
    """Return the mean nDCG@10."""
    named = {
        query: [dataset.documents[place].id for place, _ in ranked]
        for query, ranked in zip(dataset.queries, lists, strict=True)
    }
    return round(measure(named, dataset.judgements).ndcg, 4)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval_peer")
    parser.add_argument("datasets", type=Path, nargs="+", help="folders in the form of BEIR")
    parser.add_argument("--embedder", default="wordllama", help="as in corpus.embedder")
    parser.add_argument("--name", default="retrieval-peer", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
