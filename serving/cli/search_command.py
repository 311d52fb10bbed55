"""The command `parquetry search`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from parquetry.embed.registry import load_ahead
from parquetry.errors import FilesGaveWay, SettingsError, StorageError
from parquetry.printing import tell
from parquetry.serving.cli.absence_output import print_absence
from parquetry.serving.cli.answer_output import print_answer
from parquetry.serving.cli.filter_options import FilterOptions, TypeOption
from parquetry.serving.cli.option_groups import with_option_groups
from parquetry.serving.cli.options import (
    MOST_CONTEXT,
    MOST_RESULTS,
    ConfigOption,
    CorpusOption,
    JsonOption,
    VersionOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json, print_json_line
from parquetry.serving.cli.query_file import Query, read_queries
from parquetry.serving.search.answers import Shown, answer
from parquetry.serving.search.known_names import check_filters
from parquetry.serving.search.reranking import Recency, Reranking
from parquetry.serving.search.service import Level, Reader, SearchRequest, SearchResponse
from parquetry.settings.sections import Settings
from parquetry.storage.database import open_ahead
from parquetry.storage.search.searcher import Mode
from parquetry.telemetry.tracing import start_tracing


@dataclass(frozen=True, slots=True)
class _ShownOptions:
    """The options that choose what is shown of each result."""

    citations: Annotated[
        bool, typer.Option("--citations", help="Quote the sentence that answers, and list the sources as [n].")
    ] = False
    context: Annotated[
        int | None,
        typer.Option(
            "--context", min=0, max=MOST_CONTEXT, metavar="N", help="Also show N chunks before and after each result."
        ),
    ] = None
    full: Annotated[
        bool, typer.Option("--full", help="Print whole chunks; with --json, also the documents' full texts.")
    ] = False
    explain: Annotated[bool, typer.Option("--explain", help="Explain how the results were found.")] = False
    why_not: Annotated[
        str | None,
        typer.Option("--why-not", metavar="DOCUMENT", help="Explain why this document is not among the results."),
    ] = None

    def shown(self) -> Shown:
        return Shown(self.citations, self.context, self.full, self.explain)


_NO_FILTERS = FilterOptions()
_NOTHING_MORE = _ShownOptions()


@with_option_groups
def search(
    query: Annotated[str | None, typer.Argument(help="Question or keywords.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=MOST_RESULTS, help="Number of results.")] = 5,
    what: TypeOption = "documents",
    mode: Annotated[Mode, typer.Option(help="Vectors, keywords, or both.")] = "hybrid",
    level: Annotated[Level, typer.Option(help="Rank chunks, or documents by chunks and identity.")] = "chunk",
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Rerank the candidates with the model of search.rerank.")
    ] = False,
    diversify: Annotated[
        bool, typer.Option("--diversify", help="Prefer results that add something new over ones that repeat.")
    ] = False,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Return equal texts as separate results.")] = False,
    recency: Annotated[
        float | None,
        typer.Option(min=0.01, max=100_000, metavar="DAYS", help="Halve the score of what is this many days old."),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out results with a relevance below this, 0 to 1.")
    ] = None,
    given: FilterOptions = _NO_FILTERS,
    shown: _ShownOptions = _NOTHING_MORE,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Answer every line of this file, or of stdin for -; with --json, a line of JSON each."
        ),
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the chunks that answer a question, with their citations."""
    asked = _asked(query, queries, k, mode)
    filters = given.filters(what)
    settings = settings_for(config, corpus)
    start_tracing(settings.observability)
    _begin_opening(asked, settings)
    look = Reranking(rerank, None if recency is None else Recency(recency, datetime.now(UTC)), diversify)
    requests = [
        SearchRequest(each.text, each.mode, each.k, min_score, filters, level, look, duplicates) for each in asked
    ]
    with Reader(settings, version) as reader:
        if filters.namespaces or filters.source or filters.tags or filters.any_tags:
            check_filters(reader.connection, settings, filters)
        if shown.why_not is not None:
            print_absence(reader, requests, shown.why_not, as_json=as_json)
            return
        for response in _undisturbed(reader.search_all(requests)):
            found = answer(reader, response, shown.shown(), settings.search)
            if as_json:
                (print_json if queries is None else print_json_line)(found.as_json())
                continue
            if queries is not None:
                tell(response.request.query)
                tell()
            print_answer(found)
            if queries is not None:
                tell()


def _begin_opening(asked: Sequence[Query], settings: Settings) -> None:
    """Open in threads what takes long and will be needed, while the corpus is opened."""
    open_ahead()
    if any(each.mode != "text" for each in asked):
        load_ahead(settings.embedders, settings.embedding, settings.hub)


def _undisturbed(responses: Iterator[SearchResponse]) -> Iterator[SearchResponse]:
    """Yield responses as they come; after the first is printed, the command cannot restart.

    Raises:
        StorageError: files were replaced during the search.
    """
    begun = False
    try:
        for response in responses:
            yield response
            begun = True
    except FilesGaveWay as error:
        if begun:
            raise StorageError(str(error)) from error
        raise


def _asked(query: str | None, file: str | None, k: int, mode: Mode) -> list[Query]:
    if (query is None) == (file is None):
        problem = "Missing argument 'query'" if file is None else f"both a query and --queries {file} are given"
        raise SettingsError(f"{problem}; give one query, or a file of them with --queries")
    return read_queries(file, k, mode) if file is not None else [Query(query or "", k, mode)]
