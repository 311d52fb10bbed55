"""Pairs of a question and a chunk found for it, judged by a test collection: what relevance is calibrated on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from parquetry.ranking.evaluation import Dataset
from parquetry.ranking.relevance_report import JudgedPair, Kind
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.database import sql_string
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Mode

DEPTH = 10
"""results looked at per search"""
REMOVED = 60
"""maximum number of questions asked again without the documents that answer them"""
MODES: tuple[Mode, ...] = get_args(Mode)


def judged_pairs(reader: Reader, dataset: Dataset, foreign: Mapping[str, str]) -> Iterator[JudgedPair]:
    """Search for every question in every mode, with and without the documents that answer it.

    Args:
        reader: reader of a corpus with the collection, as `index_dataset` makes it.
        dataset: the collection.
        foreign: id -> text of questions that it does not answer.
    """
    names = {document.id: f"{number}.md" for number, document in enumerate(dataset.documents)}
    everything = Filters()
    for number, (query, text) in enumerate(dataset.queries.items()):
        answers = {id_ for id_, score in dataset.judgements[query].items() if score > 0 and id_ in names}
        yield from _found(reader, dataset.name, "answered", query, text, everything, {names[id_] for id_ in answers})
        if number < REMOVED and answers and len(answers) < len(names):
            removed = Filters(where=f"filename NOT IN ({', '.join(sql_string(names[id_]) for id_ in sorted(answers))})")
            yield from _found(reader, dataset.name, "removed", query, text, removed, ())
    for query, text in foreign.items():
        yield from _found(reader, dataset.name, "foreign", query, text, everything, ())


def _found(
    reader: Reader, collection: str, kind: Kind, query: str, text: str, filters: Filters, answers: Iterable[str]
) -> Iterator[JudgedPair]:
    relevant = set(answers)
    requests = [SearchRequest(text, mode=mode, k=DEPTH, filters=filters, duplicates=True) for mode in MODES]
    for response in reader.search_all(requests):
        for rank, hit in enumerate(response.hits, 1):
            yield JudgedPair(
                collection, query, kind, response.request.mode, hit.evidence, hit.row["filename"] in relevant, rank
            )
