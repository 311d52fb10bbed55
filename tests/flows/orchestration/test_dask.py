"""Batches of a flow run on workers of Dask, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys

import pytest
from prefect import flow, task

pytest.importorskip("prefect_dask", reason="the extra `dask` is not installed")

from parquetry.errors import RefusedError
from parquetry.tasks.engine.gate import limit_of_embedding
from parquetry.tasks.engine.remote import _RUNNERS
from tests.flows.orchestration.corpora import content_of
from tests.flows.orchestration.dask_cluster import cluster, on_dask
from tests.flows.orchestration.embedding_service import (
    NOTE_USD,
    PATIENCE,
    PRICE,
    Service,
    serving,
    texts_of,
    write_library,
    write_notes,
)
from tests.servers.embedding_server import counting
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
__all__ = ["cluster"]


def test_requests_of_all_workers_keep_the_limit_of_the_service(workshop, cluster, prefect_api):
    """Two workers would ask at the same time; a limit of one slot holds for both."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate

    write_library(workshop, 8)
    service = Service(2, seconds=1)
    with serving(workshop, service) as server, get_client(sync_client=True) as client:
        limit = GlobalConcurrencyLimitCreate(name=limit_of_embedding(server.url), limit=1)
        client.create_global_concurrency_limit(limit)
        report = on_dask(workshop, cluster.wait(2))
        assert report.documents.added == 8
        assert len(server.requests) == 4
        assert service.most == 1


def test_killed_worker_costs_nothing_and_the_corpus_is_that_of_threads(workshop, cluster, prefect_api, tmp_path):
    """A worker is killed while both have a batch in work; the other one does its batch again."""
    write_library(workshop, 12)
    service = Service(2, seconds=PATIENCE, then=lambda: cluster.processes[-1].send_signal(signal.SIGKILL))
    with serving(workshop, service):
        report = on_dask(workshop, cluster.wait(2))
        assert service.most == 2, "one worker did everything"
        assert cluster.processes[-1].wait(PATIENCE) == -signal.SIGKILL
        assert report.documents.added == 12
        assert not report.documents.failed
        assert report.work.tokens > 0
        distributed = content_of(workshop.settings.corpus.root)
        workshop.sections |= {"run": {}, "corpus": {"embedder": "openai:test", "root": str(tmp_path / "threads")}}
        workshop.refresh()
        assert distributed == content_of(workshop.settings.corpus.root)
        assert [len(rows) for rows in distributed.values()] == [12, 12, 12]


def test_run_without_an_address_starts_workers_for_its_time(workshop, prefect_api):
    write_library(workshop, 8)
    service, before = Service(2, seconds=PATIENCE), multiprocessing.active_children()
    with serving(workshop, service):
        report = on_dask(workshop, None)
    assert service.most == 2, "one worker did everything"
    assert (report.error, report.documents.added) == (None, 8)
    assert set(multiprocessing.active_children()) <= set(before)


@task
def told_by_worker() -> tuple[int, bool]:
    """Return the process of a worker, and whether Dask looks at the frames of its threads."""
    from distributed import get_worker

    return os.getpid(), "profile" in get_worker().periodic_callbacks


@flow
def told_by_workers(address: str | None) -> list[tuple[int, bool]]:
    with _RUNNERS["dask"](address, 2) as runner:
        return [each.result() for each in [runner.submit(told_by_worker, {}) for _ in range(4)]]


def test_profiler_of_dask_can_deadlock_no_worker(cluster, prefect_api):
    """Python 3.11 may never return from a look at the frames of other threads; a batch would wait for minutes."""
    own, started = told_by_workers(None), told_by_workers(cluster.wait(2))
    assert os.getpid() not in [process for process, _ in (*own, *started)]
    assert {is_profiled for _, is_profiled in own} == {sys.version_info >= (3, 12)}
    assert {is_profiled for _, is_profiled in started} == {False}, "the variable that is asked for has no effect"


@pytest.fixture
def notes(workshop) -> Workshop:
    write_notes(workshop)
    return workshop


def test_budget_holds_for_all_workers_and_a_larger_one_pays_only_for_the_rest(notes, cluster, prefect_api):
    service = Service(2, seconds=PATIENCE, reply=counting)
    with serving(notes, service) as server:
        notes.sections["embedding"]["price_per_million_tokens"] = PRICE
        report = on_dask(notes, cluster.wait(2), budget_usd=8.5 * NOTE_USD)
        assert service.most == 2, "one worker did everything"
        assert len(texts_of(server)) * NOTE_USD <= 8.5 * NOTE_USD
        assert report.documents.added == len(notes.rows()) == 8
        assert isinstance(report.error, RefusedError)
        assert report.error.exit_code == 3
        told = f"is reached, ${8 * NOTE_USD:.4f} spent: 4 documents stay as before. What was paid for is kept; raise"
        assert told in str(report.error)
        report = on_dask(notes, cluster.wait(2), budget_usd=20 * NOTE_USD)
        assert (report.error, report.documents.added, len(notes.rows())) == (None, 4, 12)
        assert report.work.cost_usd == pytest.approx(4 * NOTE_USD)
        assert sorted(texts_of(server)) == sorted(set(texts_of(server))), "nothing is paid for twice"


def test_worker_that_is_killed_while_it_pays_does_not_make_the_others_pass_the_budget(notes, cluster, prefect_api):
    """The service has charged it, and no report tells how much; Dask gives its order to the other worker."""
    service = Service(
        2, seconds=PATIENCE, then=lambda: cluster.processes[-1].send_signal(signal.SIGKILL), reply=counting
    )
    with serving(notes, service) as server:
        notes.sections["embedding"]["price_per_million_tokens"] = PRICE
        budget = 12.5 * NOTE_USD
        report = on_dask(notes, cluster.wait(2), budget_usd=budget)
        assert service.most == 2, "one worker did everything"
        assert cluster.processes[-1].wait(PATIENCE) == -signal.SIGKILL
        paid = len(texts_of(server)) * NOTE_USD
        assert paid <= budget
        reported = report.work.cost_usd
        assert reported == pytest.approx(paid - 2 * NOTE_USD), "two texts of the killed worker are in no report"
        assert report.documents.added == len(notes.rows()) == round(reported / NOTE_USD)
        (refusal,) = report.refused
        assert "more by lost workers: " in refusal
        assert f"{12 - report.documents.added} documents stay as before" in refusal
        assert not list((notes.root / "corpus" / "orders").iterdir())
        report = on_dask(notes, cluster.wait(2), budget_usd=20 * NOTE_USD)
        assert (report.error, len(notes.rows())) == (None, 12)
        assert len(texts_of(server)) == 14, "only what the killed worker took with it was paid for again"
