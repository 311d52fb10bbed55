"""Search quality on test collections, and the effect of each setting.

    python -m benchmarks.retrieval CRANFIELD VASWANI TAU2_BANKING

Each collection is a folder in BEIR format. First every mode is measured in normal use, as by `parquetry eval`, for each
embedder. Then each setting is varied separately, with the first embedder.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.conditions import conditions, write_result
from benchmarks.retrieval_sweep import Collection, Keywords, Ranked, without_common_part, without_stop_words
from parquetry.ranking.evaluation import read_dataset
from parquetry.ranking.fusion import convex, reciprocal_rank
from parquetry.serving.cli.eval_command import MODES, evaluate_mode, index_dataset
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import SearchSettings, Settings, override

PACKAGES = ("parquetry", "duckdb", "wordllama", "PyStemmer", "numpy")
WEIGHTS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0)
DEPTHS = (20, 50, 100, 200, 500, 1000)
RRF_WEIGHTS = (0.2, 0.3, 0.5)
RRF_KS = (10, 30, 60)
K1S = (0.6, 0.9, 1.2, 1.5, 2.0)
BS = (0.3, 0.5, 0.75, 0.9)
K3S = (0.0, 2.0, 8.0, 1000.0)
HEADINGS = (0, 1, 2, 3, 5)
"""times that a word of a heading counts besides"""
SHIPPED = SearchSettings()


@dataclass(frozen=True)
class Row:
    """nDCG@10 of one setting, by collection."""

    table: str
    setting: str
    ndcg: Mapping[str, float]

    @property
    def mean(self) -> float:
        return fmean(self.ndcg.values())


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    embedders = options.embedder or ["wordllama"]
    modes: dict[str, dict[str, Any]] = {_label(embedder): {} for embedder in embedders}
    collections: dict[str, Collection] = {}
    for embedder in embedders:
        for folder in options.datasets:
            name, measured, collection = _modes(folder, embedder)
            modes[_label(embedder)][name] = measured
            if embedder == embedders[0] and not options.modes_only:
                collections[name] = collection
    _print_modes(modes)
    rows = list(_sweep(collections)) if collections else []
    _print_rows(rows)
    result = {
        "conditions": conditions(PACKAGES),
        "search_settings": SHIPPED.model_dump(),
        "keywords": asdict(Keywords()),
        "modes": modes,
        "sweep": [{**asdict(row), "mean": row.mean} for row in rows],
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _modes(folder: Path, embedder: str) -> tuple[str, dict[str, Any], Collection]:
    """Return the name, metrics of every mode, and ranked lists of one collection."""
    dataset = read_dataset(folder)
    settings = override(Settings(), {"corpus": {"embedder": embedder}})
    with tempfile.TemporaryDirectory(prefix="parquetry-retrieval-") as scratch:
        indexed = index_dataset(dataset, settings, Path(scratch), Observer())
        with closing(Reader(indexed.settings)) as reader:
            done = [evaluate_mode(reader, dataset, dataset.queries, mode) for mode in MODES]
            collection = Collection(reader, dataset, indexed.settings)
    measured: dict[str, Any] = {
        "documents": len(dataset.documents),
        "queries": len(dataset.queries),
        "chunks": indexed.report.work.chunks_written,
        "seconds_index": round(indexed.report.seconds, 2),
    }
    for each in done:
        measured[each.mode] = {**asdict(each.measures), "ms_per_query": round(each.ms_per_query, 2)}
    print(
        f"{_label(embedder)} on {dataset.name}: " + ", ".join(f"{e.mode} {e.measures.ndcg:.4f}" for e in done),
        flush=True,
    )
    return dataset.name, measured, collection


@dataclass(frozen=True)
class _Lists:
    """Ranked lists of one collection, one list per query."""

    collection: Collection
    vector: Sequence[Ranked]
    text: Sequence[Ranked]

    def hybrid(self) -> float:
        """Return nDCG@10 with the default fusion."""
        return self.collection.fused(
            partial(convex, weight=SHIPPED.vector_weight), self.vector, self.text, SHIPPED.depth
        ).ndcg


def _sweep(collections: Mapping[str, Collection]) -> Iterator[Row]:
    lists = {name: _Lists(each, each.by_vectors(), each.by_keywords(Keywords())) for name, each in collections.items()}
    yield from _sides(lists)
    yield from _fusions(lists)
    yield from _keywords(lists)
    yield from _vectors(lists)


def _sides(lists: Mapping[str, _Lists]) -> Iterator[Row]:
    yield Row("sides", "vector", {name: each.collection.measure(each.vector).ndcg for name, each in lists.items()})
    yield Row("sides", "text", {name: each.collection.measure(each.text).ndcg for name, each in lists.items()})
    yield Row("sides", "hybrid", {name: each.hybrid() for name, each in lists.items()})


def _fusions(lists: Mapping[str, _Lists]) -> Iterator[Row]:
    for depth in DEPTHS:
        for weight in WEIGHTS:
            fusion = partial(convex, weight=weight)
            yield Row("convex", f"weight {weight:g}, depth {depth}", {
                name: each.collection.fused(fusion, each.vector, each.text, depth).ndcg for name, each in lists.items()
            })  # fmt: skip
    for k in RRF_KS:
        for weight in RRF_WEIGHTS:
            fusion = partial(reciprocal_rank, weight=weight, k=k)
            yield Row("rrf", f"weight {weight:g}, k {k}, depth {SHIPPED.depth}", {
                name: each.collection.fused(fusion, each.vector, each.text, SHIPPED.depth).ndcg
                for name, each in lists.items()
            })  # fmt: skip


def _keywords(lists: Mapping[str, _Lists]) -> Iterator[Row]:
    variants = {
        "no identities of documents": Keywords(identity=0.0),
        **{f"words of headings times {1 + extra}": Keywords(headings=extra) for extra in HEADINGS},
        "no stems": Keywords(stems=False),
        "stop words searched for": Keywords(stop_words=True),
        "identifiers in parts only": Keywords(wholes=False),
        **{f"k3 {k3:g}": Keywords(k3=k3) for k3 in K3S},
        **{f"k1 {k1:g}, b {b:g}": Keywords(k1=k1, b=b) for k1 in K1S for b in BS},
    }
    for setting, keywords in variants.items():
        changed = {name: replace(each, text=each.collection.by_keywords(keywords)) for name, each in lists.items()}
        yield Row(
            "keywords, text", setting, {n: each.collection.measure(each.text).ndcg for n, each in changed.items()}
        )
        yield Row("keywords, hybrid", setting, {name: each.hybrid() for name, each in changed.items()})


def _vectors(lists: Mapping[str, _Lists]) -> Iterator[Row]:
    """Yield variants that would need another embedder, so are not settings, to measure their potential."""
    variants: dict[str, dict[str, list[Ranked]]] = {
        "mean vector of the corpus taken off": {},
        "query without stop words": {},
    }
    for name, each in lists.items():
        collection = each.collection
        common = collection.vectors.mean(axis=0)
        variants["mean vector of the corpus taken off"][name] = collection.by_vectors(
            without_common_part(collection.vectors, common), without_common_part(collection.query_vectors, common)
        )
        shorter = [without_stop_words(query) for query in collection.dataset.queries.values()]
        variants["query without stop words"][name] = collection.by_vectors(
            queries=np.asarray(collection.embedder.embed_queries(shorter), np.float32)
        )
    for setting, found in variants.items():
        changed = {name: replace(each, vector=found[name]) for name, each in lists.items()}
        yield Row(
            "vectors, vector", setting, {n: each.collection.measure(each.vector).ndcg for n, each in changed.items()}
        )
        yield Row("vectors, hybrid", setting, {name: each.hybrid() for name, each in changed.items()})


# --- normal use


def _label(embedder: str) -> str:
    """Return an embedder's name without the path of its files."""
    kind, _, model = embedder.partition(":")
    return f"{kind}:{Path(model).name}" if kind == "onnx" else embedder


def _print_modes(modes: Mapping[str, Any]) -> None:
    print(f"{'embedder':<24} {'collection':<16} {'mode':<7} nDCG@10  recall@100  MRR@10  ms/query")
    for embedder, collections in modes.items():
        for name, measured in collections.items():
            for mode in MODES:
                figures = measured[mode]
                print(
                    f"{embedder[-24:]:<24} {name:<16} {mode:<7} {figures['ndcg']:7.4f}  {figures['recall']:10.4f}  "
                    f"{figures['mrr']:6.4f}  {figures['ms_per_query']:8.1f}"
                )


def _print_rows(rows: Sequence[Row]) -> None:
    for table in dict.fromkeys(row.table for row in rows):
        of_table = [row for row in rows if row.table == table]
        print(f"\n{table:<36}" + "".join(f"{name[:15]:>16}" for name in of_table[0].ndcg) + f"{'mean':>16}")
        for row in of_table:
            print(f"{row.setting:<36}" + "".join(f"{value:16.4f}" for value in (*row.ndcg.values(), row.mean)))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval")
    parser.add_argument("datasets", type=Path, nargs="+", help="folders in the form of BEIR")
    parser.add_argument(
        "--embedder", action="append", help="as in corpus.embedder; may be repeated (default wordllama)"
    )
    parser.add_argument("--modes-only", action="store_true", help="leave the settings as they are")
    parser.add_argument("--name", default="retrieval", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
