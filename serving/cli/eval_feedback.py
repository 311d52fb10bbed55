"""Measure search on a corpus itself, with the judgements that its users gave through the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from parquetry.errors import SettingsError
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.ranking.evaluation import NDCG_DEPTH, RECALL_DEPTH, Measures, measure
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service.feedback import FILE, Feedback, FeedbackStore
from parquetry.serving.service.relevance_judgements import JudgedQuery, relevance_judgements
from parquetry.serving.state.folder import state_place
from parquetry.settings.sections import Settings
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Mode

_MOST = 1_000_000
"""maximum number of judgements"""


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Queries with a relevant document, and their judgements."""

    judgements: Mapping[JudgedQuery, Mapping[str, int]]
    """query -> document id -> 1 for relevant, 0 for irrelevant"""
    without: int
    """number of other queries, of which no document of the corpus was found relevant"""


def judged_queries(settings: Settings, reader: Reader) -> JudgedQueries:
    """Return the queries that users judged results of, as `relevance_judgements` does.

    Args:
        settings: settings with the corpus and the state of its service.
        reader: reader of the corpus; documents that it does not hold any more are left out.

    Raises:
        SettingsError: no query has a relevant document.
        StorageError: the judgements cannot be read.
    """
    state = state_place(settings)
    there = {row["document_id"] for row in reader.documents()}
    found = relevance_judgements(all_feedback(state), there)
    usable = {query: documents for query, documents in found.items() if any(documents.values())}
    if not usable:
        raise SettingsError(
            f"no result of corpus {settings.corpus.root} was judged relevant yet (feedback through the service, in "
            f"{state}); give a DATASET in BEIR format instead"
        )
    return JudgedQueries(usable, len(found) - len(usable))


def all_feedback(state: Path) -> list[Feedback]:
    """Return the judgements of a state folder, in the order in which they were made; none if there is no file.

    Raises:
        StorageError: they cannot be read.
    """
    if not (state / FILE).is_file():
        return []
    store = FeedbackStore(state)
    try:
        return list(store.list(None, limit=_MOST))[::-1]
    finally:
        store.close()


def evaluate_feedback(
    corpora: Sequence[tuple[str, Reader]], judged: JudgedQueries, limit: int | None, modes: Sequence[Mode]
) -> list[dict[str, Any]]:
    """Return one object for each corpus and mode, as `parquetry eval` prints it.

    Args:
        corpora: name and reader of each corpus to compare.
        judged: the queries.
        limit: maximum number of queries; None for all.
        modes: search modes.
    """
    queries = dict(list(judged.judgements.items())[:limit])
    if judged.without:
        tell(
            f"Left out, because no document was judged relevant: {counted(judged.without, 'query', 'queries')}.",
            err=True,
        )
    return [_measured(name, reader, queries, mode) for mode in modes for name, reader in corpora]


def _measured(
    name: str, reader: Reader, queries: Mapping[JudgedQuery, Mapping[str, int]], mode: Mode
) -> dict[str, Any]:
    rankings: dict[str, list[str]] = {}
    started = perf_counter()
    for number, (namespace, text) in enumerate(queries):
        request = SearchRequest(
            text, mode=mode, k=RECALL_DEPTH, level="document", duplicates=True, filters=Filters((namespace,))
        )
        hits = reader.search(request).hits
        rankings[str(number)] = list(dict.fromkeys(hit.row["document_id"] for hit in hits))
    seconds = perf_counter() - started
    judgements = {str(number): documents for number, documents in enumerate(queries.values())}
    measures: Measures = measure(rankings, judgements)
    first = [(document, judgements[query]) for query, found in rankings.items() for document in found[:NDCG_DEPTH]]
    return {
        "corpus": name,
        "mode": mode,
        "queries": len(queries),
        "ndcg@10": round(measures.ndcg, 5),
        "recall@100": round(measures.recall, 5),
        "mrr@10": round(measures.mrr, 5),
        "judged@10": round(sum(document in known for document, known in first) / max(1, len(first)), 5),
        "ms_per_query": round(1000 * seconds / len(queries), 2),
    }
