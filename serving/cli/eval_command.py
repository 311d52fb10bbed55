"""The command `eval`: measure search quality on a test collection with relevance judgements."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, get_args

import typer

from parquetry.errors import StorageError
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.ranking.evaluation import RECALL_DEPTH, CollectionDocument, Dataset, Measures, measure, read_dataset
from parquetry.serving.cli.options import MOST_ROWS, ConfigOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.cli.progress import progress
from parquetry.serving.search.service import Reader, SearchRequest, SearchResponse
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.search.searcher import Mode

EvalMode = Literal["hybrid", "vector", "text", "all"]
MODES: tuple[Mode, ...] = get_args(Mode)
_SOURCE = "documents"
_MOST_CHUNKS = 100 * RECALL_DEPTH
"""maximum number of chunks to request in order to find `RECALL_DEPTH` documents"""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A test collection indexed in a corpus."""

    dataset: Dataset
    settings: Settings
    """settings with the corpus's root"""
    report: RunReport
    """report of the refresh that indexed the collection"""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics of one search mode."""

    mode: Mode
    measures: Measures
    ms_per_query: float
    """mean, including the embedding of the query"""


def evaluate(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Folder with corpus.jsonl, queries.jsonl and qrels/test.tsv.")
    ],
    mode: Annotated[EvalMode, typer.Option(help="Ranking mode; `all` measures all three.")] = "hybrid",
    limit_queries: Annotated[
        int | None,
        typer.Option("--limit-queries", metavar="N", min=1, max=MOST_ROWS, help="Run only the first N queries."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure search on a test collection in BEIR format.

    The collection is indexed in a temporary corpus.
    """
    settings = settings_for(config, None)
    collection = read_dataset(dataset)
    queries = dict(list(collection.queries.items())[:limit_queries])
    with tempfile.TemporaryDirectory(prefix="parquetry-eval-") as folder:
        with progress(silent=as_json) as observer:
            indexed = index_dataset(collection, settings, Path(folder), observer)
        _print_notes(indexed)
        modes = MODES if mode == "all" else (mode,)
        with Reader(indexed.settings) as reader:
            done = [evaluate_mode(reader, collection, queries, each) for each in modes]
    rows = [_as_json(indexed, queries, each) for each in done]
    if as_json:
        print_json({"results": rows} if mode == "all" else rows[0])
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def index_dataset(dataset: Dataset, settings: Settings, folder: Path, observer: Observer) -> Indexed:
    """Index the documents of a test collection in a new corpus.

    Args:
        dataset: the test collection.
        settings: chunking, embedder and search settings; their paths are replaced.
        folder: empty folder for documents and corpus.
        observer: receives progress.

    Raises:
        ParquetryError: as for a refresh.
        StorageError: a document was lost on the way.
    """
    from parquetry.flows.pipelines.documents import Request, run_refresh
    from parquetry.tasks.engine.base import DirectEngine

    source = folder / _SOURCE
    source.mkdir()
    for number, document in enumerate(dataset.documents):
        (source / _filename(number)).write_text(_markdown(document), "utf-8")
    placed = _placed(settings, folder / "corpus", source)
    report = run_refresh(Request(placed), DirectEngine(), observer)
    failed = [failure for failure in report.failures if failure.status == "failed"]
    if failed:
        first = failed[0]
        raise StorageError(
            f"{len(failed)} of {counted(len(dataset.documents), 'document')} could not be indexed; the first, "
            f"_id {_document(dataset, first.uri.rpartition('/')[2]).id!r}: {first.stage}/{first.reason}: {first.detail}"
        )
    return Indexed(dataset, placed, report)


def _placed(settings: Settings, corpus: Path, source: Path) -> Settings:
    """Return settings with a single source and a separate corpus, and without search logs."""
    values = settings.model_dump()
    values["corpus"] |= {"root": str(corpus)}
    values["search"] |= {"index_folder": None, "log": None, "record_searches": False, "cache_entries": 0}
    values["source"] = [{"name": _SOURCE, "uri": str(source)}]
    return parse_settings(values, "eval")


def _filename(number: int) -> str:
    # Ids may hold any characters; a number is a valid file name everywhere.
    return f"{number}.md"


def _document(dataset: Dataset, filename: str) -> CollectionDocument:
    return dataset.documents[int(filename.removesuffix(".md"))]


def _markdown(document: CollectionDocument) -> str:
    """Format a document as Markdown: its title, then its text."""
    title = " ".join(document.title.split())
    return f"# {title}\n\n{document.text}\n" if title else f"{document.text}\n"


def evaluate_mode(reader: Reader, dataset: Dataset, queries: Mapping[str, str], mode: Mode) -> Evaluation:
    """Run every query and compute the metrics.

    Args:
        reader: reader of the corpus with the collection.
        dataset: the indexed test collection.
        queries: query id -> text of the queries to run.
        mode: search mode.
    """
    rankings: dict[str, list[str]] = {}
    short: list[str] = []
    seconds = 0.0
    for id_, text in queries.items():
        started = perf_counter()
        response = reader.search(SearchRequest(text, mode=mode, k=RECALL_DEPTH, duplicates=True))
        seconds += perf_counter() - started
        rankings[id_] = _documents(dataset, response)
        if len(rankings[id_]) < RECALL_DEPTH == len(response.hits):
            short.append(id_)
    _lengthen(rankings, short, reader, dataset, queries, mode)
    judgements = {query: dataset.judgements[query] for query in queries}
    return Evaluation(mode, measure(rankings, judgements), 1000 * seconds / len(queries))


def _documents(dataset: Dataset, response: SearchResponse) -> list[str]:
    """Return the documents of the chunks found, each at the rank of its best chunk."""
    return list(dict.fromkeys(_document(dataset, hit.row["filename"]).id for hit in response.hits))


def _lengthen(
    rankings: dict[str, list[str]],
    short: Sequence[str],
    reader: Reader,
    dataset: Dataset,
    queries: Mapping[str, str],
    mode: Mode,
) -> None:
    """Request more chunks where those found cover fewer documents than recall needs.

    The additional documents rank after those of the ordinary search.
    """
    asked = RECALL_DEPTH
    while short and asked < _MOST_CHUNKS:
        asked *= 4
        responses = reader.search_all(
            [SearchRequest(queries[id_], mode=mode, k=asked, duplicates=True) for id_ in short]
        )
        still = []
        for id_, response in zip(short, responses, strict=True):
            rankings[id_] = list(dict.fromkeys([*rankings[id_], *_documents(dataset, response)]))
            if len(rankings[id_]) < RECALL_DEPTH and len(response.hits) == asked:
                still.append(id_)
        short = still


def _print_notes(indexed: Indexed) -> None:
    """Print the limits of the figures on stderr."""
    skipped = sum(failure.status == "skipped" for failure in indexed.report.failures)
    if skipped:
        tell(f"{counted(skipped, 'document has', 'documents have')} no text and cannot be found.", err=True)
    if indexed.dataset.unknown:
        unknown = counted(indexed.dataset.unknown, "relevant document")
        tell(f"Not in corpus.jsonl, and counted as missed: {unknown}.", err=True)


def _as_json(indexed: Indexed, queries: Mapping[str, str], evaluation: Evaluation) -> dict[str, Any]:
    measures = evaluation.measures
    return {
        "dataset": indexed.dataset.name,
        "mode": evaluation.mode,
        "documents": len(indexed.dataset.documents),
        "queries": len(queries),
        "ndcg@10": round(measures.ndcg, 5),
        "recall@100": round(measures.recall, 5),
        "mrr@10": round(measures.mrr, 5),
        "seconds_index": round(indexed.report.seconds, 3),
        "ms_per_query": round(evaluation.ms_per_query, 2),
    }
