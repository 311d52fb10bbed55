"""Processor time of searches that read the index file, as a command's do: what the identities of documents cost.

    python -m benchmarks.file_searches COLLECTION... [--filings FINANCEBENCH_DEV]

Three ways take turns in one process: without identities, ranked by SQL (as before there were any); with identities,
ranked by SQL; and as shipped, where one statement reads the postings and identities of the query. The last two give the
same results.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.conditions import conditions, write_result
from benchmarks.filings import settings_of
from benchmarks.filings_parts import replaced
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import read_dataset
from parquetry.serving.cli.eval_command import index_dataset
from parquetry.serving.cli.progress import Observer as Progress
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.search import visible_index
from parquetry.storage.search.searcher import Mode, Searcher
from parquetry.storage.search.visible_index import IndexInFile
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "duckdb", "wordllama", "numpy")
MODES: tuple[Mode, ...] = ("text", "hybrid")
QUERIES = 25
ROUNDS = 12
RESULTS = 10


def _no_identities(_index: IndexInFile, _weights: Mapping[int, float], docs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.zeros(len(docs))


_BY_SQL = (visible_index, "MOST_POSTINGS", -1)
WAYS: Mapping[str, Sequence[tuple[Any, str, Any]]] = {
    "without identities, SQL": (_BY_SQL, (IndexInFile, "identity_scores", _no_identities)),
    "with identities, SQL": (_BY_SQL,),
    "as shipped": (),
}
"""way -> what is replaced: owner, name and value"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    corpora: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="parquetry-file-searches-") as scratch:
        for name, settings, queries in _corpora(options, Path(scratch)):
            corpora[name] = _measured(settings, queries)
            for mode, ways in corpora[name]["processor ms"].items():
                print(f"{name}, {mode}: " + ", ".join(f"{way} {figure}" for way, figure in ways.items()), flush=True)
    result = {"conditions": conditions(PACKAGES), "load": os.getloadavg()[0], "rounds": ROUNDS, "corpora": corpora}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _corpora(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Settings, list[str]]]:
    """Yield name, settings and queries of each corpus, indexed."""
    for folder in options.collections:
        dataset = read_dataset(folder)
        (scratch / dataset.name).mkdir()
        indexed = index_dataset(dataset, Settings(), scratch / dataset.name, Progress())
        yield dataset.name, indexed.settings, list(dataset.queries.values())[:QUERIES]
    if options.filings is not None:
        settings = settings_of(scratch / "filings", options.filings)
        run_refresh(Request(settings), DirectEngine(), Observer())
        asked = (options.filings / "questions.jsonl").read_text("utf-8").splitlines()
        yield "filings", settings, [json.loads(line)["question"] for line in asked]


def _measured(settings: Settings, queries: Sequence[str]) -> dict[str, Any]:
    random = np.random.default_rng(7)
    spent: dict[str, dict[str, list[float]]] = {mode: {way: [] for way in WAYS} for mode in MODES}
    with Reader(settings) as reader, closing(reader.index.session()) as session:
        searcher = Searcher(session)
        ((embedder, dimension),) = searcher.dimensions().items()
        vectors = {query: {embedder: random.normal(size=dimension).astype(np.float32)} for query in queries}
        ((postings,),) = session.execute("SELECT count(*) FROM parts.postings").fetchall()
        for mode in MODES:
            for _ in range(ROUNDS):
                for name, way in WAYS.items():
                    with replaced(way):
                        started = time.process_time()
                        # Twice in a row, the second would be remembered.
                        for query in queries:
                            searcher.search(query, vectors[query], mode, RESULTS, distinct=True)
                        spent[mode][name].append(1000 * (time.process_time() - started) / len(queries))
        counts = {"chunks": searcher.explanation.chunks, "documents": searcher.explanation.documents}
    figures = {mode: {way: round(median(times[1:]), 2) for way, times in ways.items()} for mode, ways in spent.items()}
    means = {mode: {way: round(fmean(times[1:]), 2) for way, times in ways.items()} for mode, ways in spent.items()}
    return {**counts, "postings": postings, "queries": len(queries), "processor ms": figures, "means": means}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.file_searches")
    parser.add_argument("collections", type=Path, nargs="*", help="folders in the form of BEIR")
    parser.add_argument("--filings", type=Path, help="filings as PDF with questions.jsonl")
    parser.add_argument("--name", default="file-searches", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
