"""Each part of the ranking switched off in turn, in one run of one state: made annual reports, and what is given.

    python -m benchmarks.filings_parts [COLLECTION...] [--filings FINANCEBENCH_DEV]

Parts are switched off by constants of the product, and the index is built anew for each; the modes `text` and `vector`
are without the other side. Settings were chosen on one half of the questions about made reports; figures are of the
other half. Each COLLECTION is a folder in BEIR format, measured as by `parquetry eval`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.filings import DEEP, PACKAGES, SHOWN, questions_found, questions_of, settings_of
from benchmarks.filings_made import Question, write_reports
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import read_dataset
from parquetry.serving.cli.eval_command import MODES, evaluate_mode, index_dataset
from parquetry.serving.cli.progress import Observer as Progress
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.index import build, tokens, words
from parquetry.storage.search import searcher
from parquetry.tasks.engine.base import DirectEngine

_WHOLE = tuple(macro.replace(f"len(parts) <= {tokens.MOST_PARTS}", "len(parts) <= 0") for macro in tokens.MACROS)
PARTS: Mapping[str, Sequence[tuple[Any, str, Any]]] = {
    "as shipped": (),
    "no identities of documents": ((searcher, "IDENTITY_SHARE", 0.0),),
    "words of headings count once": ((words, "HEADING_EXTRA", 0),),
    "no headings, and no heads of tables": ((words, "HEADING_EXTRA", 0), (words, "CHUNK_CONTENT", "text")),
    "letters and digits not divided": ((build, "MACROS", _WHOLE),),
}
"""part that is switched off -> module, name and value of each constant"""


@contextmanager
def replaced(attributes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set attributes, and set them back at the end.

    Args:
        attributes: owner, a module or a class; name; value.

    Raises:
        AttributeError: there is no such attribute.
    """
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in attributes]
    try:
        for owner, name, value in attributes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def measured(source: Path, questions: Sequence[Question], constants: Sequence[tuple[Any, str, Any]]) -> dict[str, Any]:
    """Return the figures of each mode over a folder of reports, with constants set."""
    with tempfile.TemporaryDirectory(prefix="parquetry-parts-") as scratch, replaced(constants):
        settings = settings_of(Path(scratch), source)
        run_refresh(Request(settings), DirectEngine(), Observer())
        return questions_found(settings, questions)


def indexed_anew(settings: Settings, constants: Sequence[tuple[Any, str, Any]], figures: Callable[[], Any]) -> Any:
    """Return figures of a corpus that is there, whose index is built with constants set."""
    index = Path(settings.corpus.root) / "index"
    shutil.rmtree(index)
    with replaced(constants):
        return figures()


def of_collection(folder: Path) -> dict[str, dict[str, float]]:
    """Return nDCG@10 of each mode on a collection, by part that is switched off."""
    dataset = read_dataset(folder)
    with tempfile.TemporaryDirectory(prefix="parquetry-parts-") as scratch:
        settings = index_dataset(dataset, Settings(), Path(scratch), Progress()).settings

        def figures() -> dict[str, float]:
            with Reader(settings) as reader:
                found = {mode: evaluate_mode(reader, dataset, dataset.queries, mode) for mode in MODES}
            return {mode: round(each.measures.ndcg, 4) for mode, each in found.items()}

        return {part: indexed_anew(settings, constants, figures) for part, constants in PARTS.items()}


def of_filings(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of each mode on FinanceBench, by part that is switched off."""
    with tempfile.TemporaryDirectory(prefix="parquetry-parts-") as scratch:
        settings = settings_of(Path(scratch), folder)
        run_refresh(Request(settings), DirectEngine(), Observer())
        questions = questions_of(folder)
        return {
            part: indexed_anew(settings, constants, lambda: questions_found(settings, questions))
            for part, constants in PARTS.items()
        }


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filings_parts")
    parser.add_argument("collections", type=Path, nargs="*", help="folders in the form of BEIR")
    parser.add_argument("--filings", type=Path, help="filings as PDF with questions.jsonl")
    parser.add_argument("--name", default="filings-parts", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    figures: dict[str, dict[str, Any]] = {}
    for kind, long_tables in (("short tables", False), ("long tables", True)):
        with tempfile.TemporaryDirectory(prefix="parquetry-reports-") as folder:
            questions = write_reports(Path(folder), long_tables=long_tables)
            half = questions[len(questions) // 2 :]
            figures[kind] = {part: measured(Path(folder), half, constants) for part, constants in PARTS.items()}
    if options.filings is not None:
        figures["FinanceBench"] = of_filings(options.filings)
    for kind, parts in figures.items():
        for part, modes in parts.items():
            print(f"{kind}, {part}: " + ", ".join(f"{mode} {modes[mode]['answer found']:.2f}" for mode in MODES))
    ndcg = {folder.name: of_collection(folder) for folder in options.collections}
    for name, parts in ndcg.items():
        for part, modes in parts.items():
            print(f"{name}, {part}: " + ", ".join(f"{mode} {modes[mode]:.4f}" for mode in MODES))
    result = {
        "conditions": conditions(PACKAGES),
        "results": SHOWN,
        "depth": DEEP,
        "measured": figures,
        "ndcg@10": ndcg,
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


if __name__ == "__main__":
    main()
