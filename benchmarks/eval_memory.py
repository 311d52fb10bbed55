"""Memory of `parquetry eval` where most questions find many chunks of few documents.

    python -m benchmarks.eval_memory CRANFIELD

The abstracts of a collection in BEIR format are put together into 240 documents, and their titles, left out of the
texts, are the questions. A hundred chunks of a search cover fewer than a hundred of these documents, so that `eval`
asks for more chunks in batches. One question alone shows what indexing takes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.process_tree import run_alone
from parquetry.ranking.evaluation import CollectionDocument, read_dataset

PACKAGES = ("parquetry", "duckdb", "wordllama", "numpy", "pyarrow", "deltalake")
DOCUMENTS = 240
QUESTIONS = 1190
COUNTS = (1, 150, QUESTIONS)
"""numbers of questions of the runs"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    parts = [each for each in read_dataset(options.dataset).documents if each.title.strip() and each.text.strip()]
    with tempfile.TemporaryDirectory(prefix="parquetry-eval-memory-") as scratch:
        questions = write_collection(parts, Path(scratch))
        rows = [_measured(Path(scratch), min(count, questions)) for count in options.questions or COUNTS]
    result = {"conditions": conditions(PACKAGES), "collection": options.dataset.name, "runs": rows}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def write_collection(parts: Sequence[CollectionDocument], folder: Path) -> int:
    """Write a collection of few long documents in BEIR format.

    Args:
        parts: documents with a title and a text, to put together.
        folder: existing folder.

    Returns:
        The number of questions.
    """
    (folder / "qrels").mkdir()
    groups = [parts[start::DOCUMENTS] for start in range(min(DOCUMENTS, len(parts)))]
    texts = ["\n\n".join(each.text.replace(each.title, "", 1).strip() for each in group) for group in groups]
    corpus = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(texts)]
    asked = [(number, each.title) for number, group in enumerate(groups) for each in group][:QUESTIONS]
    queries = [{"_id": f"q{place}", "text": title} for place, (_, title) in enumerate(asked)]
    for name, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    judged = "".join(f"q{place}\td{number}\t1\n" for place, (number, _) in enumerate(asked))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged, "utf-8")
    return len(asked)


def _measured(collection: Path, questions: int) -> dict[str, Any]:
    """Run `parquetry eval` and return its figures with its largest resident memory."""
    command = [sys.executable, "-m", "parquetry.serving.cli.main", "eval", str(collection), "--json"]
    command += ["--limit-queries", str(questions)]
    output, usage = run_alone(command)
    figures: dict[str, Any] = json.loads(output)
    row = {key: figures[key] for key in ("documents", "queries", "ndcg@10", "recall@100", "mrr@10")}
    row["peak_rss_mb"] = round(usage.ru_maxrss * 1024 / 1e6, 1)
    print(row, flush=True)
    return row


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eval_memory")
    parser.add_argument("dataset", type=Path, help="folder in the form of BEIR, whose documents have titles")
    parser.add_argument("--questions", type=int, action="append", help="number of questions; may be repeated")
    parser.add_argument("--name", default="eval-memory", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
