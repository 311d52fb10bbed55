"""Texts through a batch API, sent and received by workers of Dask, in processes of their own."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

pytest.importorskip("prefect_dask", reason="the extra `dask` is not installed")

from tests.flows.orchestration.batch_lane import check_lane, sent
from tests.flows.orchestration.dask_cluster import cluster, on_dask, started
from tests.flows.pipelines.batch_workshop import TEXTS, age, batch_workshop, check_all_is_there
from tests.servers.batch_server import BatchServer
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
__all__ = ["cluster"]


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path, server) -> Workshop:
    return batch_workshop(tmp_path, server)


def test_workers_send_texts_and_take_results_and_the_corpus_is_that_of_threads(
    workshop, server, cluster, prefect_api, tmp_path
):
    check_lane(workshop, server, lambda: on_dask(workshop, cluster.wait(2)), tmp_path / "threads")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """A cluster of one worker at a time."""
    with started(tmp_path_factory.mktemp("mortal"), 1) as cluster:
        yield cluster


@pytest.mark.parametrize("budget", [None, 50.0])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("POST", "/v1/files", id="between claim and decision"),
        pytest.param("POST", "/v1/batches", id="before the id of the batch is recorded"),
        pytest.param("GET", "/content", id="while results are taken"),
        pytest.param("DELETE", "/v1/files", id="when the end is recorded and not reported"),
    ],
)
def test_worker_that_is_killed_buys_nothing_twice(workshop, server, mortal, prefect_api, method, path, budget):
    """The service carries out its request, and another worker gets the order."""
    killed = []

    def kill(did, at):
        if not killed and did == method and path in at:
            killed.append(mortal.processes[-1])
            killed[0].send_signal(signal.SIGKILL)
            killed[0].wait()
            mortal.start_worker()

    workshop.sections["batch_api"] |= {"wait_minutes": 0.2, "poll_seconds": 0.05}
    within = {} if budget is None else {"budget_usd": budget}
    server.after, server.ends_at_once = kill, True
    reports = [on_dask(workshop, mortal.wait(1), workers=1, batch_documents=6, **within)]
    assert killed
    while reports[-1].error is not None:
        assert len(reports) < 4, reports[-1]
        age(workshop)
        reports.append(on_dask(workshop, mortal.wait(1), workers=1, batch_documents=6, **within))
    check_all_is_there(workshop, server)
    assert (sent(server), server.ordinary) == (Counter(TEXTS), [])
    tokens = sum(cost.tokens for report in reports for cost in report.costs)
    assert tokens == sum(len(text.split()) for text in TEXTS), "the cost is counted once"
