"""Calibration of relevance on test collections, and its error on collections that it was not fitted to.

    python -m benchmarks.relevance CRANFIELD VASWANI TAU2_BANKING
    python -m benchmarks.relevance --bundled --apart FINANCEBENCH CRANFIELD VASWANI TAU2_BANKING

Each collection is a folder in BEIR format. `--bundled` also writes the calibration that comes with the package;
`--apart` names a collection that is measured, but too small to be fitted to.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT, conditions, write_result
from parquetry.embed.registry import open_embedder
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import read_dataset
from parquetry.ranking.relevance import Calibration
from parquetry.ranking.relevance_files import with_calibration
from parquetry.ranking.relevance_report import PRIOR, SHOWN, curves_of, fitted, held_out
from parquetry.serving.cli.calibrate_command import measured, pairs_of, print_reports
from parquetry.settings.sections import Settings, override

PACKAGES = ("parquetry", "duckdb", "wordllama", "PyStemmer", "numpy")
BUNDLED = ROOT / "parquetry" / "ranking" / "calibrations" / "wordllama.json"


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    settings = override(Settings(), {"corpus": {"embedder": options.embedder}})
    collections = [read_dataset(folder) for folder in options.datasets]
    pairs = pairs_of(collections, settings, Observer())
    curves = curves_of(pairs)
    print_reports(held_out(pairs))
    apart = {}
    for folder in options.apart:
        collection = read_dataset(folder)
        reports = fitted(pairs_of([collection], settings, Observer()), curves)
        print(collection.name)
        print_reports(reports)
        apart[collection.name] = {mode: report.as_json() for mode, report in reports.items()}
    embedder = open_embedder(settings.corpus.embedder, settings.embedding, settings.hub).id
    told = measured(collections, pairs, curves)
    result = {
        "conditions": conditions(PACKAGES),
        "embedder": embedder,
        "prior": PRIOR,
        "results_per_search": SHOWN,
        "curves": {
            kind: {"intercept": curve.intercept, "weights": dict(curve.weights)} for kind, curve in curves.items()
        },
        "measured": told,
        "apart": apart,
    }
    if options.bundled:
        text = with_calibration(None, Calibration("embedder", embedder, curves), told, BUNDLED.name)
        BUNDLED.write_text(text, "utf-8")
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relevance")
    parser.add_argument("datasets", type=Path, nargs="+", help="folders in the form of BEIR")
    parser.add_argument("--apart", type=Path, action="append", default=[], help="collection that is measured only")
    parser.add_argument("--embedder", default="wordllama", help="as in corpus.embedder")
    parser.add_argument("--bundled", action="store_true", help="write the calibration of the package, too")
    parser.add_argument("--name", default="relevance", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
