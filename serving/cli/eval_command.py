"""The command `eval`: how well search finds what people judged relevant, on a test collection of one's own choice."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, get_args

import typer

from parquetry.errors import StorageError
from parquetry.flows.pipelines.silent import Silent
from parquetry.planning.report import RunReport
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.ranking.evaluation import RECALL_DEPTH, Dataset, Measures, Passage, measure, read_dataset
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
"""asked for in order to find `RECALL_DEPTH` documents"""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A test collection in a corpus."""

    dataset: Dataset
    settings: Settings
    """with the corpus's root"""
    report: RunReport
    """of the refresh that indexed it"""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How one mode of search did."""

    mode: Mode
    measures: Measures
    ms_per_query: float
    """mean, embedding the query included"""


def evaluate(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Folder with corpus.jsonl, queries.jsonl and qrels/test.tsv.")
    ],
    mode: Annotated[EvalMode, typer.Option(help="How to rank; `all` measures each of the three.")] = "hybrid",
    limit_queries: Annotated[
        int | None,
        typer.Option("--limit-queries", metavar="N", min=1, max=MOST_ROWS, help="Ask only the first N queries."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure search on a test collection in the form of BEIR.

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


def index_dataset(dataset: Dataset, settings: Settings, folder: Path, observer: Silent) -> Indexed:
    """Refresh a new corpus with the documents of a test collection.

    Args:
        dataset: what to index.
        settings: chunking, embedder and search; the places in them are replaced.
        folder: an empty one, for documents and corpus.
        observer: is told of progress.

    Raises:
        ParquetryError: as a refresh.
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
    """The settings with one source and a corpus of its own, whose searches leave no trace elsewhere."""
    values = settings.model_dump()
    values["corpus"] |= {"root": str(corpus)}
    values["search"] |= {"index_folder": None, "log": None, "record_searches": False, "cache_entries": 0}
    values["source"] = [{"name": _SOURCE, "uri": str(source)}]
    return parse_settings(values, "eval")


def _filename(number: int) -> str:
    # Ids may be anything; a number is a file name everywhere.
    return f"{number}.md"


def _document(dataset: Dataset, filename: str) -> Passage:
    return dataset.documents[int(filename.removesuffix(".md"))]


def _markdown(document: Passage) -> str:
    """A document as people would write it: its title, then its text."""
    title = " ".join(document.title.split())
    return f"# {title}\n\n{document.text}\n" if title else f"{document.text}\n"


def evaluate_mode(reader: Reader, dataset: Dataset, queries: Mapping[str, str], mode: Mode) -> Evaluation:
    """Ask every query, and measure the answers.

    Args:
        reader: of the corpus that holds the collection.
        dataset: what was indexed.
        queries: id -> text of those to ask.
        mode: how to rank.
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
    """The documents of some chunks, each at the rank of its best one."""
    return list(dict.fromkeys(_document(dataset, hit.row["filename"]).id for hit in response.hits))


def _lengthen(
    rankings: dict[str, list[str]],
    short: Sequence[str],
    reader: Reader,
    dataset: Dataset,
    queries: Mapping[str, str],
    mode: Mode,
) -> None:
    """Ask for more chunks where those found are of fewer documents than recall looks at.

    What they add stands after what people see without asking for so many.
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
    """What the figures do not tell, on stderr."""
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
