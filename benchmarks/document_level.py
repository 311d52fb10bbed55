"""Documents ranked by their best chunk alone, and as `--level document` ranks them.

    python -m benchmarks.document_level FOLDER... [--filings FINANCEBENCH_DEV]

Each FOLDER is a collection in BEIR format. The made annual reports (`benchmarks/filings_made.py`), and the filings if
they are given, are collections in which one document is relevant to each question.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.filings_made import Question, write_reports
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import NDCG_DEPTH, Judgements, ndcg, read_dataset
from parquetry.serving.cli.eval_command import MODES, index_dataset
from parquetry.serving.search import best_documents
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.search.searcher import Mode
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "duckdb", "wordllama", "PyStemmer", "numpy", "pypdfium2")
RULES = {
    "best chunk": (0.0, 0.0),
    "second chunk": (best_documents.SECOND_SHARE, 0.0),
    "identity": (0.0, best_documents.IDENTITY_WEIGHT),
    "as shipped": (best_documents.SECOND_SHARE, best_documents.IDENTITY_WEIGHT),
}
"""share of the second-best chunk, and weight of the identity"""
Asked = Sequence[tuple[str, Judgements]]
"""questions, with the relevance of files by name"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="parquetry-document-level-") as scratch:
        for place, (name, settings, asked) in enumerate(_collections(options, Path(scratch))):
            with Reader(settings) as reader:
                found = {rule: _measured(reader, asked, *weights) for rule, weights in RULES.items()}
            measured[name] = {"questions": len(asked), "ndcg@10": found}
            print(place, name, measured[name], flush=True)
    result = {"conditions": conditions(PACKAGES), "rules": RULES, "measured": measured}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _measured(reader: Reader, asked: Asked, second: float, identity: float) -> Mapping[Mode, float]:
    with _weights(second, identity):
        return {mode: round(fmean(_ndcg(reader, text, judged, mode) for text, judged in asked), 4) for mode in MODES}


@contextmanager
def _weights(second: float, identity: float) -> Iterator[None]:
    shipped = best_documents.SECOND_SHARE, best_documents.IDENTITY_WEIGHT
    best_documents.SECOND_SHARE, best_documents.IDENTITY_WEIGHT = second, identity
    try:
        yield
    finally:
        best_documents.SECOND_SHARE, best_documents.IDENTITY_WEIGHT = shipped


def _ndcg(reader: Reader, text: str, judged: Judgements, mode: Mode) -> float:
    request = SearchRequest(text, mode=mode, k=NDCG_DEPTH, level="document", duplicates=True)
    return ndcg([hit.row["filename"] for hit in reader.search(request).hits], judged)


def _collections(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Settings, Asked]]:
    for folder in options.datasets:
        dataset = read_dataset(folder)
        place = scratch / dataset.name
        place.mkdir()
        indexed = index_dataset(dataset, parse_settings({}, "document level"), place, Observer())
        names = {document.id: f"{number}.md" for number, document in enumerate(dataset.documents)}
        asked = [
            (text, {names.get(id_, id_): score for id_, score in dataset.judgements[query].items()})
            for query, text in dataset.queries.items()
        ]
        yield dataset.name, _uncached(indexed.settings), asked
    reports = scratch / "reports"
    reports.mkdir()
    questions = write_reports(reports)
    half = len(questions) // 2
    yield "made reports, chosen on", *_filings(reports, questions[:half], scratch / "made")
    yield "made reports, measured", *_filings(reports, questions[half:], scratch / "made")
    if options.filings:
        lines = (options.filings / "questions.jsonl").read_text("utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        asked = [Question(each["question"], f"{each['doc_name']}.pdf") for each in records]
        yield "FinanceBench", *_filings(options.filings, asked, scratch / "filings")


def _filings(source: Path, questions: Sequence[Question], corpus: Path) -> tuple[Settings, Asked]:
    values = {
        "corpus": {"root": str(corpus)},
        "source": [{"name": "filings", "uri": str(source), "include": ["*.pdf", "*.md"]}],
    }
    settings = _uncached(parse_settings(values, "document level"))
    run_refresh(Request(settings), DirectEngine(), Observer())
    return settings, [(each.text, {each.filename: 1}) for each in questions]


def _uncached(settings: Settings) -> Settings:
    """Return settings under which a change of weights is not answered from before."""
    values = settings.model_dump()
    values["search"] |= {"cache_entries": 0}
    return parse_settings(values, "document level")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.document_level")
    parser.add_argument("datasets", type=Path, nargs="*", help="folders in the form of BEIR")
    parser.add_argument("--filings", type=Path, help="folder of filings as PDF with questions.jsonl")
    parser.add_argument("--name", default="document-level", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
