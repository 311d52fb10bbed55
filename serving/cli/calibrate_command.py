"""The command `calibrate`: measure what the scores of an embedder or a reranker mean, for the relevance of results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from parquetry.embed.registry import open_embedder
from parquetry.errors import SettingsError, StorageError
from parquetry.flows.pipelines.observer import Observer
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.process_folder import process_folder
from parquetry.ranking.evaluation import Dataset, read_dataset
from parquetry.ranking.relevance import Calibration, Curve, Role
from parquetry.ranking.relevance_files import general_questions, parse_calibrations, with_calibration
from parquetry.ranking.relevance_report import JudgedPair, ModeReport, curves_of, fitted, held_out
from parquetry.serving.cli.eval_command import index_dataset
from parquetry.serving.cli.options import ConfigOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.cli.progress import progress
from parquetry.serving.search.judged_pairs import judged_pairs
from parquetry.serving.search.reranking import configured_reranker
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings

FOREIGN = 60
"""maximum number of questions that each other collection lends"""


def calibrate(
    datasets: Annotated[
        list[Path],
        typer.Argument(metavar="DATASET...", help="Folders with corpus.jsonl, queries.jsonl and qrels/test.tsv."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the calibration is written; default: search.calibration."),
    ] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Calibrate the reranker of search.rerank instead of the embedder.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure what scores mean, on test collections.

    Collections have the format of BEIR. Each is indexed in a temporary corpus.
    """
    role: Role = "reranker" if rerank else "embedder"
    settings = settings_for(config, None)
    place = output or (Path(settings.search.calibration) if settings.search.calibration else None)
    if place is None:
        raise SettingsError("no file to write: set calibration in [search] of the settings, or pass --output FILE")
    collections = [read_dataset(folder) for folder in datasets]
    if len({each.name for each in collections}) < len(collections):
        raise SettingsError("two of the folders have the same name; each collection needs one of its own")
    known = place.read_text("utf-8") if place.exists() else None
    if known is not None:
        parse_calibrations(known, str(place))
    # A model that cannot be opened is told before anything is indexed.
    model = configured_reranker(settings).id if rerank else _embedder(settings)
    with progress(silent=as_json) as observer:
        pairs = pairs_of(collections, settings, observer, role)
    curves = curves_of(pairs)
    told = measured(collections, pairs, curves)
    _write(place, with_calibration(known, Calibration(role, model, curves), told, str(place)))
    if as_json:
        print_json({role: model, "file": str(place), **told})
    else:
        print_reports(held_out(pairs))
        tell(f"Calibration of {model} written to {place}.")


def _embedder(settings: Settings) -> str:
    return open_embedder(settings.corpus.embedder, settings.embedding, settings.hub).id


def pairs_of(
    collections: Sequence[Dataset], settings: Settings, observer: Observer, role: Role = "embedder"
) -> list[JudgedPair]:
    """Index collections, and search for the questions of each, and for some that it does not answer.

    Args:
        collections: test collections.
        settings: chunking, embedder and search settings; their paths are replaced.
        observer: receives progress.
        role: model whose scores are the evidence.
    """
    pairs: list[JudgedPair] = []
    for collection in collections:
        foreign = dict(general_questions())
        for other in collections:
            if other is not collection:
                lent = list(other.queries.items())[:FOREIGN]
                foreign |= {f"{other.name}/{query}": text for query, text in lent}
        with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
            indexed = index_dataset(collection, _without_calibration(settings), Path(folder), observer)
            with Reader(indexed.settings) as reader:
                pairs += judged_pairs(reader, collection, foreign, role)
    return pairs


def _without_calibration(settings: Settings) -> Settings:
    """Return settings without the file that may not be there yet."""
    search = settings.search.model_copy(update={"calibration": None})
    return settings.model_copy(update={"search": search})


def measured(
    collections: Sequence[Dataset], pairs: Sequence[JudgedPair], curves: Mapping[str, Curve]
) -> dict[str, Any]:
    """Return the data of a calibration and its quality, as JSON."""
    asked = {(pair.collection, pair.kind, pair.query) for pair in pairs}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "collections": [
            {
                "name": each.name,
                "documents": len(each.documents),
                **{
                    kind: sum((name, of) == (each.name, kind) for name, of, _ in asked)
                    for kind in ("answered", "removed", "foreign")
                },
            }
            for each in collections
        ],
        "pairs": len(pairs),
        "held_out": {mode: report.as_json() for mode, report in held_out(pairs).items()},
        "fitted": {mode: report.as_json() for mode, report in fitted(pairs, curves).items()},
    }


def _write(place: Path, text: str) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    except OSError as error:
        raise StorageError(f"{place} cannot be written ({error.strerror}); pass another file as --output") from error


def print_reports(reports: Mapping[str, ModeReport]) -> None:
    """Print the quality of a calibration on questions that it was not fitted to."""
    for mode, report in reports.items():
        questions = counted(report.answered, "answered question")
        tell(f"{mode}: {questions}, {report.unanswerable} unanswerable; expected calibration error {report.error:.3f}")
        print_table(
            ["relevance", "results", "predicted", "observed"],
            [
                [f"{each.low:.1f} to {each.high:.1f}", each.count, f"{each.predicted:.2f}", f"{each.observed:.2f}"]
                for each in report.bins
            ],
        )
        tell()
        kinds = sorted({kind for each in report.thresholds for kind in each.silent})
        print_table(
            ["threshold", "kept", "precision", *(f"nothing found, {kind}" for kind in kinds)],
            [
                [
                    f"{each.threshold:.1f}",
                    f"{each.kept:.2f}",
                    f"{each.precision:.2f}",
                    *(f"{each.silent[kind]:.2f}" for kind in kinds),
                ]
                for each in report.thresholds
            ],
        )
        tell()
