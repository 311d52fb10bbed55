"""Evaluation of rankings: test collections in BEIR's format, and measures over them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parquetry.errors import SettingsError
from parquetry.settings.small_file import open_file

NDCG_DEPTH = 10
RECALL_DEPTH = 100
MRR_DEPTH = 10
_COLUMNS = ("query-id", "corpus-id", "score")

Judgements = Mapping[str, int]
"""document id -> relevance to one query; 0 and less for irrelevant"""


@dataclass(frozen=True, slots=True)
class CollectionDocument:
    """One document of a test collection."""

    id: str
    title: str
    """empty if it has none"""
    text: str
    """empty in some collections"""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A test collection: documents, queries, and the judgements of relevance."""

    name: str
    """name of its folder"""
    documents: tuple[CollectionDocument, ...]
    queries: Mapping[str, str]
    """id -> text of the queries that have a relevant document, in the order of the file"""
    judgements: Mapping[str, Judgements]
    """query id -> its judgements, for the same queries"""
    unknown: int
    """judged relevant documents missing from the corpus: no ranking can find them, and they count as not found"""


@dataclass(frozen=True, slots=True)
class Measures:
    """Means over queries, each from 0 to 1."""

    ndcg: float
    """at 10"""
    recall: float
    """at 100"""
    mrr: float
    """at 10"""


def measure(rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Judgements]) -> Measures:
    """Compute the means of nDCG@10, recall@100 and MRR@10.

    Args:
        rankings: query id -> document ids, best first, without repetition.
        judgements: query id -> its judgements; every query counts, one without a ranking with 0.
    """
    pairs = [(rankings.get(query, ()), judged) for query, judged in judgements.items()]
    count = len(pairs) or 1
    return Measures(
        ndcg=sum(ndcg(ranking, judged) for ranking, judged in pairs) / count,
        recall=sum(recall(ranking, judged) for ranking, judged in pairs) / count,
        mrr=sum(reciprocal_rank(ranking, judged) for ranking, judged in pairs) / count,
    )


def ndcg(ranking: Sequence[str], judged: Judgements, depth: int = NDCG_DEPTH) -> float:
    """Compute the normalised discounted cumulative gain of the first `depth` documents.

    The gain of a document is its judgement itself, not 2 to its power. The ideal ranking is that of all judged
    documents.

    Source: trec_eval, measure `ndcg_cut`; Järvelin and Kekäläinen, ACM TOIS 2002.
    """
    ideal = _discounted(sorted(judged.values(), reverse=True)[:depth])
    return _discounted([judged.get(document, 0) for document in ranking[:depth]]) / ideal if ideal else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return sum(max(gain, 0) / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def recall(ranking: Sequence[str], judged: Judgements, depth: int = RECALL_DEPTH) -> float:
    """Compute the share of the relevant documents that are among the first `depth`."""
    relevant = {document for document, score in judged.items() if score > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], judged: Judgements, depth: int = MRR_DEPTH) -> float:
    """Compute one over the rank of the first relevant document; 0 if none is among the first `depth`."""
    ranks = (rank for rank, document in enumerate(ranking[:depth], 1) if judged.get(document, 0) > 0)
    return 1 / next(ranks, math.inf)


# --- reading


def read_dataset(folder: Path) -> Dataset:
    """Read a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`.

    Raises:
        SettingsError: a file is missing, or one of its lines is invalid.
    """
    if not folder.is_dir():
        raise SettingsError(
            f"{folder} is not a folder; a dataset is one with corpus.jsonl, queries.jsonl and qrels/test.tsv"
        )
    documents = _read_documents(folder / "corpus.jsonl")
    texts = _read_queries(folder / "queries.jsonl")
    judged = _read_judgements(folder / "qrels" / "test.tsv", texts)
    answered = {query: scores for query, scores in judged.items() if max(scores.values()) > 0}
    if not answered:
        raise SettingsError(f"{folder / 'qrels' / 'test.tsv'}: no query has a relevant document (a score above 0)")
    known = {document.id for document in documents}
    return Dataset(
        name=folder.resolve().name,
        documents=documents,
        queries={query: text for query, text in texts.items() if query in answered},
        judgements={query: answered[query] for query in texts if query in answered},
        unknown=sum(score > 0 and id_ not in known for scores in answered.values() for id_, score in scores.items()),
    )


def _read_documents(file: Path) -> tuple[CollectionDocument, ...]:
    documents: dict[str, CollectionDocument] = {}
    for place, record in _records(file):
        id_ = _id(record, place)
        if id_ in documents:
            raise SettingsError(f"{place}: _id {id_!r} stands in an earlier line too; ids must differ")
        documents[id_] = CollectionDocument(
            id_, _text(record, "title", place), _text(record, "text", place, needed=True)
        )
    if not documents:
        raise SettingsError(f"{file} holds no documents")
    return tuple(documents.values())


def _read_queries(file: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for place, record in _records(file):
        id_ = _id(record, place)
        if id_ in queries:
            raise SettingsError(f"{place}: _id {id_!r} stands in an earlier line too; ids must differ")
        queries[id_] = _text(record, "text", place, needed=True)
    if not queries:
        raise SettingsError(f"{file} holds no queries")
    return queries


def _read_judgements(file: Path, queries: Mapping[str, str]) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    lines = _lines(file)
    place, header = next(lines, (str(file), ""))
    if tuple(header.split("\t")) != _COLUMNS:
        raise SettingsError(f"{place}: the first line must be the header {' TAB '.join(_COLUMNS)}")
    for place, line in lines:
        fields = line.split("\t")
        if len(fields) != len(_COLUMNS):
            raise SettingsError(f"{place}: has {len(fields)} columns between tabs, not {' TAB '.join(_COLUMNS)}")
        query, document, score = fields
        if query not in queries:
            raise SettingsError(f"{place}: query-id {query!r} is not in queries.jsonl")
        try:
            value = int(score)
        except ValueError as error:
            raise SettingsError(f"{place}: score must be a whole number, not {score!r}") from error
        if judged.setdefault(query, {}).setdefault(document, value) != value:
            raise SettingsError(f"{place}: an earlier line judges {document!r} for query {query!r} otherwise")
    return judged


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, line in _lines(file):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"{place}: is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise SettingsError(f"{place}: must be a JSON object")
        yield place, record


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, each with its place for messages."""
    try:
        # A byte order mark that some editors write is not part of the first line.
        with open(file, encoding="utf-8-sig", newline="\n", opener=open_file) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{file}, line {number}", line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise SettingsError(
            f"{file} is missing; a dataset has corpus.jsonl, queries.jsonl and qrels/test.tsv"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"{file} cannot be read: {reason}") from error


def _id(record: Mapping[str, Any], place: str) -> str:
    id_ = record.get("_id")
    if isinstance(id_, int) and not isinstance(id_, bool):
        return str(id_)
    if not isinstance(id_, str) or not id_:
        raise SettingsError(f"{place}: needs a string _id")
    return id_


def _text(record: Mapping[str, Any], key: str, place: str, *, needed: bool = False) -> str:
    value = record.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise SettingsError(f"{place}: needs a string {key}" if needed else f"{place}: {key} must be a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SettingsError(f"{place}: {key} holds half of a surrogate pair, which is no character") from error
    return value
