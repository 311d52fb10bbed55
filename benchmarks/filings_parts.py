"""Questions over made annual reports with each part of the ranking switched off in turn, in one run of one state.

    python -m benchmarks.filings_parts

Parts are switched off by constants of the product, and the index is built anew for each. Settings were chosen on one
half of the questions; figures are of the other half.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.filings import DEEP, PACKAGES, SHOWN, questions_found, settings_of
from benchmarks.filings_made import Question, write_reports
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.cli.eval_command import MODES
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
def without(constants: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set constants, and set them back at the end.

    Raises:
        AttributeError: there is no such constant.
    """
    before = [(module, name, getattr(module, name)) for module, name, _ in constants]
    try:
        for module, name, value in constants:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def measured(source: Path, questions: Sequence[Question], constants: Sequence[tuple[Any, str, Any]]) -> dict[str, Any]:
    """Return the figures of each mode over a folder of reports, with constants set."""
    with tempfile.TemporaryDirectory(prefix="parquetry-parts-") as scratch, without(constants):
        settings = settings_of(Path(scratch), source)
        run_refresh(Request(settings), DirectEngine(), Observer())
        return questions_found(settings, questions)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filings_parts")
    parser.add_argument("--name", default="filings-parts", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    figures: dict[str, dict[str, Any]] = {}
    for kind, long_tables in (("short tables", False), ("long tables", True)):
        with tempfile.TemporaryDirectory(prefix="parquetry-reports-") as folder:
            questions = write_reports(Path(folder), long_tables=long_tables)
            half = questions[len(questions) // 2 :]
            figures[kind] = {part: measured(Path(folder), half, constants) for part, constants in PARTS.items()}
        for part, modes in figures[kind].items():
            print(f"{kind}, {part}: " + ", ".join(f"{mode} {modes[mode]['answer found']:.2f}" for mode in MODES))
    result = {"conditions": conditions(PACKAGES), "results": SHOWN, "depth": DEEP, "measured": figures}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


if __name__ == "__main__":
    main()
