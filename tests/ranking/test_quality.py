"""Search finds in a collection of thousands of documents what it found before: a ranking that loses fails here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import Dataset
from parquetry.serving.cli.eval_command import evaluate_mode, index_dataset, write_documents
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.search.searcher import Mode
from parquetry.tasks.engine.base import DirectEngine
from tests.ranking.service_reports import service_reports

pytestmark = pytest.mark.slow

FIRST, ALL = 3600, 4000
"""reports of the first refresh, and of both"""
NDCG: Mapping[Mode, tuple[float, ...]] = {
    "hybrid": (1.0, 0.7339, 0.2946, 0.0273),
    "vector": (0.0105, 0.4374, 0.2170, 0.0539),
    "text": (1.0, 0.7662, 0.2848, 0.0),
}
"""nDCG@10 measured with DuckDB 2.0.1, by kind of question"""
LOSS = 0.005
"""differences up to this are rounding of another processor"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Reader, Dataset]]:
    """Index most of the reports, and the others by a second refresh, as of a folder that grows."""
    collection = service_reports(ALL)
    folder = tmp_path_factory.mktemp("reports")
    first = replace(collection, documents=collection.documents[:FIRST])
    indexed = index_dataset(first, Settings(), folder, Observer())
    write_documents(collection, folder / "documents")
    report = run_refresh(Request(indexed.settings), DirectEngine(), Observer())
    assert (indexed.report.work.chunks_written, report.work.chunks_written) == (FIRST, ALL - FIRST)
    with closing(Reader(indexed.settings)) as reader:
        yield reader, collection


@pytest.mark.parametrize("mode", NDCG)
def test_answers_rank_as_high_as_they_did(reports: tuple[Reader, Dataset], mode: Mode):
    reader, collection = reports
    queries = list(collection.queries.items())
    each = len(queries) // len(NDCG[mode])
    found = tuple(
        evaluate_mode(reader, collection, dict(queries[at : at + each]), mode).measures.ndcg
        for at in range(0, len(queries), each)
    )
    assert len(found) == len(NDCG[mode])
    assert [now for now, then in zip(found, NDCG[mode], strict=True) if now < then - LOSS] == [], found
