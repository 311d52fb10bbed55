"""Texts through a batch API, sent and received by workers of Dask, in processes of their own."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("prefect_dask", reason="the extra `dask` is not installed")

from tests.flows.orchestration.batch_lane import check_killed_lane, check_lane
from tests.flows.orchestration.dask_cluster import cluster, on_dask, started
from tests.flows.pipelines.batch_workshop import batch_workshop
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
    "at",
    [
        pytest.param(("POST", "/v1/files"), id="between claim and decision"),
        pytest.param(("POST", "/v1/batches"), id="before the id of the batch is recorded"),
        pytest.param(("GET", "/content"), id="while results are taken"),
        pytest.param(("DELETE", "/v1/files"), id="when the end is recorded and not reported"),
    ],
)
def test_worker_that_is_killed_buys_nothing_twice(workshop, server, mortal, prefect_api, at, budget):
    """The service carries out its request, and another worker gets the order."""

    def kill():
        killed = mortal.processes[-1]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        mortal.start_worker()

    within = {} if budget is None else {"budget_usd": budget}
    check_killed_lane(
        workshop, server, lambda: on_dask(workshop, mortal.wait(1), workers=1, batch_documents=6, **within), kill, at
    )
