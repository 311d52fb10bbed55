"""Questions over annual reports: whether a page that answers is among the first ten results.

    python -m benchmarks.filings [FINANCEBENCH_DEV] [--long-tables]

Without a folder, the reports are made (`benchmarks/filings_made.py`): the first half of the questions is for choosing
settings, the other half for measuring them. FINANCEBENCH_DEV is a folder of filings as PDF with `questions.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.filings_made import Question, write_reports
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.cli.eval_command import MODES
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings, override, parse_settings
from parquetry.storage.search.searcher import Hit, Mode
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "duckdb", "wordllama", "PyStemmer", "numpy", "pypdfium2")
SHOWN, DEEP = 10, 100
"""results that count as found, and those within which ranks are compared"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="parquetry-filings-") as scratch:
        folder = options.corpus or Path(scratch)
        source, questions = _questions(options, folder)
        settings = override(settings_of(folder, source), {"corpus": {"embedder": options.embedder}})
        run_refresh(Request(settings), DirectEngine(), Observer())
        with Reader(settings) as reader:
            found = {mode: [_found(reader, each, mode) for each in questions] for mode in MODES}
        by_weight = {f"{weight:g}": _by_weight(settings, questions, weight) for weight in options.weight or ()}
    half = len(questions) // 2
    parts = {"all": slice(None)} if options.folder else {"chosen on": slice(half), "measured": slice(half, None)}
    measured = {part: {mode: _summary(found[mode][place]) for mode in MODES} for part, place in parts.items()}
    for part, modes in measured.items():
        for mode, figures in modes.items():
            print(f"{part:<10} {mode:<7} {figures}")
    for weight, figures in by_weight.items():
        print(f"weight {weight:<11} {figures}")
    result = {
        "conditions": conditions(PACKAGES),
        "questions": len(questions),
        "results": SHOWN,
        "depth": DEEP,
        "measured": measured,
        "by weight": by_weight,
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _questions(options: argparse.Namespace, folder: Path) -> tuple[Path, list[Question]]:
    """Return the folder of the documents, and questions about them."""
    filings = options.folder
    if filings is None:
        source = folder / "reports"
        source.mkdir(exist_ok=True)
        return source, write_reports(source, long_tables=options.long_tables)
    return filings, questions_of(filings)


def questions_of(filings: Path) -> list[Question]:
    """Return the questions of FinanceBench about a folder of filings."""
    asked = [json.loads(line) for line in (filings / "questions.jsonl").read_text("utf-8").splitlines()]
    return [
        Question(
            each["question"],
            f"{each['doc_name']}.pdf",
            tuple(evidence["evidence_page_num"] + 1 for evidence in each["evidence"]),
        )
        for each in asked
    ]


def settings_of(folder: Path, source: Path) -> Settings:
    """Return settings of a corpus in a folder, with one source."""
    values = {
        "corpus": {"root": str(folder / "corpus")},
        "search": {"cache_entries": 0},
        "source": [{"name": "filings", "uri": str(source), "include": ["*.pdf", "*.md", "*.txt"]}],
    }
    return parse_settings(values, "filings")


def questions_found(settings: Settings, questions: Sequence[Question]) -> dict[str, dict[str, float]]:
    """Return the figures of each mode over all questions, on a corpus that is there."""
    with Reader(settings) as reader:
        return {mode: _summary([_found(reader, each, mode) for each in questions]) for mode in MODES}


def _by_weight(settings: Settings, questions: Sequence[Question], weight: float) -> dict[str, float]:
    """Return the figures of hybrid search with a weight of the vectors, over all questions."""
    return questions_found(override(settings, {"search": {"vector_weight": weight}}), questions)["hybrid"]


def _found(reader: Reader, question: Question, mode: Mode) -> Mapping[str, float]:
    """Return the reciprocal rank of the first answer and of its document, 0 if not among them."""
    hits = reader.search(SearchRequest(question.text, mode=mode, k=DEEP)).hits
    own = [hit.row["filename"] == question.filename for hit in hits]
    answers = [mine and _answers(hit, question) for mine, hit in zip(own, hits, strict=True)]
    return {"answer": _reciprocal(answers), "document": _reciprocal(own)}


def _answers(hit: Hit, question: Question) -> bool:
    return hit.row["page"] in question.pages if question.pages else question.words in hit.row["text"]


def _reciprocal(right: Sequence[bool]) -> float:
    return 1 / (1 + right.index(True)) if True in right else 0.0


def _summary(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the shares of questions whose answer, and whose document, is among the first results."""
    means = {
        "answer found": fmean(each["answer"] >= 1 / SHOWN for each in found),
        "answer found deep": fmean(each["answer"] > 0 for each in found),
        "answer mrr": fmean(each["answer"] for each in found),
        "document first": fmean(each["document"] == 1 for each in found),
        "document found": fmean(each["document"] >= 1 / SHOWN for each in found),
    }
    return {name: round(mean, 4) for name, mean in means.items()}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filings")
    parser.add_argument("folder", type=Path, nargs="?", help="filings as PDF with questions.jsonl; made ones without")
    parser.add_argument("--long-tables", action="store_true", help="make reports with tables longer than a chunk")
    parser.add_argument("--embedder", default="wordllama", help="as in corpus.embedder")
    parser.add_argument(
        "--weight", type=float, action="append", help="also measure this search.vector_weight; may repeat"
    )
    parser.add_argument("--corpus", type=Path, help="existing folder that keeps the corpus for the next measurement")
    parser.add_argument("--name", default="filings", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
