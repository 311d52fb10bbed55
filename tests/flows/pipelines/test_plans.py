"""A refresh never exceeds the upper bound of its plan, for any text; a plan in a file is read few times."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.estimates import KINDS, service
from parquetry.embed.base import Worst
from parquetry.embed.registry import open_embedder, worst_of
from parquetry.flows.pipelines.documents import Request, plan_with_space
from parquetry.planning.diff import Change
from parquetry.planning.report import count_documents
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.tasks.documents import listed_items, spooled
from tests.servers.embedding_server import EmbeddingServer
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

EXTENSIONS = {"code": "py"}


def check(workshop):
    planned = workshop.plan().estimate
    report = workshop.refresh()
    assert planned.unbounded == 0
    assert report.work.chunks_written <= planned.chunks
    assert report.work.tokens <= planned.tokens
    assert report.work.cost_usd <= planned.cost_usd
    return report.work.chunks_written


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_plan_is_not_passed_by_any_kind_of_text(workshop, kind):
    for number, text in enumerate(KINDS[kind](30_000)):
        workshop.write(f"{number}.{EXTENSIONS.get(kind, 'md')}", text)
    assert check(workshop) > 1
    with EmbeddingServer(service) as server:
        workshop.sections["corpus"] = {"embedder": "openai:m"}
        workshop.sections["embedding"] = {"base_url": server.url, "dimension": 8, "price_per_million_tokens": 1.0}
        assert check(workshop) > 1


ANY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=400)
ODD = st.text(st.sampled_from("\u1d160\u0958\ufb2c\u0130\u023a\ufb03 \n#|`.1\U0001d160"), min_size=1, max_size=400)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANY | ODD)
def test_no_text_has_more_tokens_than_the_worst_of_its_model(text):
    worst: Worst = worst_of("wordllama")
    (tokens,) = open_embedder("wordllama", EmbeddingSettings()).embed([text]).token_counts
    assert tokens <= len(text.encode()) * worst.tokens_per_byte + worst.tokens_per_text


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists((ANY | ODD).map(lambda text: text * 5), min_size=1, max_size=4), st.integers(16, 300), st.data())
def test_plan_is_not_passed_by_texts_and_chunk_sizes_that_nobody_thought_of(texts, size, data):
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        workshop.sections["chunking"] = {"size": size, "overlap": data.draw(st.integers(0, size - 1))}
        for number, text in enumerate(texts):
            workshop.write(f"{number}.txt", text)
        planned = workshop.plan().estimate
        work = workshop.refresh().work
        if not planned.unbounded:
            assert (work.chunks_written <= planned.chunks, work.tokens <= planned.tokens) == (True, True)


def test_changes_in_a_file_are_read_again_for_costs_batches_and_counts_alone(workshop, monkeypatch):
    """Of a hundred thousand new documents, each time takes three seconds of processor."""
    for module in (spooled, listed_items):
        monkeypatch.setattr(module, "IN_MEMORY", 2)
    read, iterate = [], spooled.SpooledRecords.__iter__

    def noted(records):
        for place, record in enumerate(iterate(records)):
            if place == 0 and isinstance(record, Change):
                read.append(len(records))
            yield record

    monkeypatch.setattr(spooled.SpooledRecords, "__iter__", noted)
    for number in range(5):
        workshop.write(f"{number}.md", f"Oak table {number}.")
    plan, space = plan_with_space(Request(workshop.settings))
    assert (count_documents(plan.sources).added, plan.to_do, len(space)) == (5, 5, 1)
    assert read == [5]
    read.clear()
    assert workshop.refresh().documents.added == 5
    assert read == [5, 5, 5]
