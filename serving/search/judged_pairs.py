"""Pairs of a question and a chunk found for it, judged by a test collection: what relevance is calibrated on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import get_args

from parquetry.ranking.evaluation import Dataset
from parquetry.ranking.relevance import Role
from parquetry.ranking.relevance_report import JudgedPair, Kind
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.database import sql_string
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Mode

DEPTH = 10
"""results looked at per search"""
REMOVED = 60
"""maximum number of questions asked again without the documents that answer them"""
MODES: tuple[Mode, ...] = get_args(Mode)


def judged_pairs(
    reader: Reader, dataset: Dataset, foreign: Mapping[str, str], role: Role = "embedder"
) -> Iterator[JudgedPair]:
    """Search for every question in every mode, with and without the documents that answer it.

    Args:
        reader: reader of a corpus with the collection, as `index_dataset` makes it.
        dataset: the collection.
        foreign: id -> text of questions that it does not answer.
        role: model whose scores are the evidence; that of a reranker is the same in every mode, so it is asked in one.

    Raises:
        SettingsError: no reranker is configured, or it cannot be opened.
        TransientError: the reranker gave no valid answer.
    """
    names = {document.id: f"{number}.md" for number, document in enumerate(dataset.documents)}
    everything = Filters()
    for number, (query, text) in enumerate(dataset.queries.items()):
        answers = {id_ for id_, score in dataset.judgements[query].items() if score > 0 and id_ in names}
        relevant = {names[id_] for id_ in answers}
        yield from _found(reader, dataset.name, "answered", query, text, everything, relevant, role)
        if number < REMOVED and answers and len(answers) < len(names):
            removed = Filters(where=f"filename NOT IN ({', '.join(sql_string(names[id_]) for id_ in sorted(answers))})")
            yield from _found(reader, dataset.name, "removed", query, text, removed, (), role)
    for query, text in foreign.items():
        yield from _found(reader, dataset.name, "foreign", query, text, everything, (), role)


def _found(
    reader: Reader,
    collection: str,
    kind: Kind,
    query: str,
    text: str,
    filters: Filters,
    answers: Iterable[str],
    role: Role,
) -> Iterator[JudgedPair]:
    relevant = set(answers)
    if role == "reranker":
        asked: dict[str, SearchRequest] = {"rerank": SearchRequest(text, look=Reranking(rerank=True))}
    else:
        asked = {mode: SearchRequest(text, mode=mode) for mode in MODES}
    requests = [replace(each, k=DEPTH, filters=filters, duplicates=True) for each in asked.values()]
    for mode, response in zip(asked, reader.search_all(requests), strict=True):
        for rank, hit in enumerate(response.hits, 1):
            yield JudgedPair(collection, query, kind, mode, hit.evidence, hit.row["filename"] in relevant, rank)
