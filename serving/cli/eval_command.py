"""The command `eval`: measure search quality on a test collection with relevance judgements."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, get_args

import typer

from parquetry.errors import SettingsError, StorageError
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.process_folder import process_folder
from parquetry.ranking.evaluation import RECALL_DEPTH, CollectionDocument, Dataset, Measures, measure, read_dataset
from parquetry.serving.cli.options import MOST_ROWS, ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.cli.progress import progress
from parquetry.serving.search.service import Reader, SearchRequest, SearchResponse
from parquetry.settings.sections import Settings, override, parse_settings
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
        Path | None,
        typer.Argument(
            metavar="DATASET",
            help="Folder with corpus.jsonl, queries.jsonl and qrels/test.tsv; default: the corpus and its feedback.",
        ),
    ] = None,
    candidate: Annotated[
        bool, typer.Option("--candidate", help="Compare with the migration that is being built.")
    ] = False,
    mode: Annotated[EvalMode, typer.Option(help="Ranking mode; `all` measures all three.")] = "hybrid",
    limit_queries: Annotated[
        int | None,
        typer.Option("--limit-queries", metavar="N", min=1, max=MOST_ROWS, help="Run only the first N queries."),
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure search on a collection, or on users' feedback.

    A test collection in BEIR format is indexed in a temporary corpus. Without one, the queries are those whose results
    were judged through the service.
    """
    if dataset is not None and corpus is not None and not candidate:
        raise SettingsError("a DATASET is indexed in a corpus of its own; leave out --corpus, or the DATASET")
    settings = settings_for(config, corpus)
    modes = MODES if mode == "all" else (mode,)
    if dataset is None:
        rows = _on_feedback(settings, modes, limit_queries, candidate=candidate)
    else:
        collection = read_dataset(dataset)
        queries = dict(list(collection.queries.items())[:limit_queries])
        rows = []
        for name, each in _compared(settings, candidate=candidate):
            with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
                measured = _on_dataset(collection, queries, modes, each, Path(folder), silent=as_json)
            rows += [{"corpus": name, **row} for row in measured] if candidate else measured
    if as_json:
        print_json(rows[0] if len(rows) == 1 else {"results": rows})
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def _compared(settings: Settings, *, candidate: bool) -> list[tuple[str, Settings]]:
    """Return the settings to measure, with their names."""
    if not candidate:
        return [("current", settings)]
    from parquetry.flows.pipelines.migration_plan import candidate_settings

    before, after = candidate_settings(settings)
    return [("current", before), ("candidate", after)]


def _on_dataset(
    collection: Dataset,
    queries: Mapping[str, str],
    modes: Sequence[Mode],
    settings: Settings,
    folder: Path,
    *,
    silent: bool,
) -> list[dict[str, Any]]:
    with progress(silent=silent) as observer:
        indexed = index_dataset(collection, settings, folder, observer)
    _print_notes(indexed)
    with Reader(indexed.settings) as reader:
        return [_as_json(indexed, queries, evaluate_mode(reader, collection, queries, each)) for each in modes]


def _on_feedback(
    settings: Settings, modes: Sequence[Mode], limit: int | None, *, candidate: bool
) -> list[dict[str, Any]]:
    from parquetry.serving.cli.eval_feedback import evaluate_feedback, judged_queries

    quiet = override(settings, {"search": {"log": None, "record_searches": False, "cache_entries": 0}})
    with ExitStack() as opened:
        reader = opened.enter_context(Reader(quiet))
        judged = judged_queries(settings, reader)
        corpora = [("current", reader)]
        if candidate:
            from parquetry.flows.pipelines.migration_plan import candidate_snapshot

            folder = opened.enter_context(tempfile.TemporaryDirectory(dir=process_folder()))
            snapshot, after = candidate_snapshot(quiet, Path(folder))
            corpora.append(("candidate", opened.enter_context(Reader(after, snapshot.version, snapshot=snapshot))))
        return evaluate_feedback(corpora, judged, limit, modes)


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
    write_documents(dataset, source)
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


def write_documents(dataset: Dataset, folder: Path) -> None:
    """Write each document of a test collection to a file of its number."""
    for number, document in enumerate(dataset.documents):
        (folder / _filename(number)).write_text(_markdown(document), "utf-8")


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
        request = SearchRequest(text, mode=mode, k=RECALL_DEPTH, duplicates=True)
        rankings[id_], chunks = _documents(dataset, reader.search(request))
        seconds += perf_counter() - started
        if len(rankings[id_]) < RECALL_DEPTH == chunks:
            short.append(id_)
    _lengthen(rankings, short, reader, dataset, queries, mode)
    judgements = {query: dataset.judgements[query] for query in queries}
    return Evaluation(mode, measure(rankings, judgements), 1000 * seconds / len(queries))


def _documents(dataset: Dataset, response: SearchResponse) -> tuple[list[str], int]:
    """Return the documents of the chunks found, each at the rank of its best chunk, and the number of chunks."""
    found = dict.fromkeys(_document(dataset, hit.row["filename"]).id for hit in response.hits)
    return list(found), len(response.hits)


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
        requests = [SearchRequest(queries[id_], mode=mode, k=asked, duplicates=True) for id_ in short]
        # Unlike a loop over the responses, `map` keeps none while the next is ranked.
        found = map(partial(_documents, dataset), reader.search_all(requests))
        still = []
        for id_, (documents, chunks) in zip(short, found, strict=True):
            rankings[id_] = list(dict.fromkeys([*rankings[id_], *documents]))
            if len(rankings[id_]) < RECALL_DEPTH and chunks == asked:
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
