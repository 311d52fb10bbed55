"""Batches of a flow run on workers of Ray, processes of this machine that the run starts."""

from __future__ import annotations

import signal
import socket
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

# Not imported: Ray reads its environment once, when it is.
if find_spec("prefect_ray") is None:
    pytest.skip("the extra `ray` is not installed", allow_module_level=True)

from parquetry.errors import RefusedError, SettingsError
from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.refresh import run_request
from parquetry.tasks.engine.ray import ray_workers
from tests.flows.orchestration.batch_lane import check_killed_lane, check_lane
from tests.flows.orchestration.corpora import content_of
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
from tests.flows.pipelines.batch_workshop import batch_workshop
from tests.servers.batch_server import BatchServer
from tests.servers.embedding_server import counting

BUDGET = 20.0
"""US dollars, of which the library costs less than a tenth"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Machine:
    """The processes of Ray, looked at while both workers have a batch in work."""

    def __init__(self) -> None:
        self.killed = 0
        """process id of the worker that was killed"""
        self.environments: list[dict[str, str]] = []
        self.programs: list[str] = []
        self.niceness: set[int] = set()
        """of the workers"""

    def kill_worker(self) -> None:
        processes = psutil.Process().children(recursive=True)
        self.programs = [" ".join(process.cmdline()) for process in processes]
        self.environments = [process.environ() for process in processes if "ray::batch" in " ".join(process.cmdline())]
        workers = [process for process in processes if "ray::batch" in " ".join(process.cmdline())]
        self.killed = workers[0].pid
        self.niceness = {worker.nice() for worker in workers}
        workers[0].send_signal(signal.SIGKILL)


def test_address_without_a_ray_is_refused_at_once():
    """Ray itself would try for many minutes."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(SettingsError, match=rf"run\.address '{address}': no Ray answers"), ray_workers(address, 1):
            pass


def test_killed_worker_costs_nothing_and_the_corpus_is_that_of_threads(workshop, prefect_api, tmp_path):
    """A worker is killed while both have a batch in work and a part of the budget; another does its batch again.

    The service charged for the texts of the killed worker, and no report has them: its part counts as spent.
    """
    before = {path.name for path in Path("/tmp").glob("ray-*")}
    handler = signal.getsignal(signal.SIGTERM)
    write_library(workshop, 12)
    machine = Machine()
    service = Service(2, seconds=PATIENCE, then=machine.kill_worker, reply=counting)
    with serving(workshop, service) as server:
        workshop.sections["embedding"]["price_per_million_tokens"] = PRICE
        workshop.sections["refresh"] = {"batch_documents": 2, "workers": 2, "budget_usd": BUDGET}
        workshop.sections["run"] = {"task_runner": "ray"}
        report = run_request(RefreshRequest(workshop.settings), Observer(), alone=True)
        assert service.most == 2, "one worker did everything"
        assert machine.killed
        assert report.documents.added == 12
        assert not report.documents.failed
        charged = sum(len(text.encode()) for request in server.requests for text in request.inputs) * PRICE / 1e6
        assert 0 < report.work.cost_usd < charged < BUDGET
        assert [each for each in report.warnings if "workers were lost at work" in each]
        assert not list((workshop.root / "corpus" / "orders").iterdir())
        distributed = content_of(workshop.settings.corpus.root)
        workshop.sections |= {"run": {}, "corpus": {"embedder": "openai:test", "root": str(tmp_path / "threads")}}
        workshop.refresh()
        assert distributed == content_of(workshop.settings.corpus.root)
        assert [len(rows) for rows in distributed.values()] == [12, 12, 12]
    assert len(machine.environments) == 2
    for each in machine.environments:
        assert each["RAY_USAGE_STATS_ENABLED"] == "0", "Ray would send reports on its use"
        assert each["RAY_AUTH_MODE"] == "token", "whoever reaches its ports could run code"
    assert machine.niceness == {psutil.Process().nice()}, "a busy machine would keep the workers from work"
    assert not any("include-dashboard=True" in each for each in machine.programs)
    # What a run starts and changes ends with it.
    assert not [each for each in psutil.Process().children(recursive=True) if "ray" in each.name()]
    assert {path.name for path in Path("/tmp").glob("ray-*")} <= before
    assert signal.getsignal(signal.SIGTERM) is handler


def test_budget_holds_for_all_workers_and_a_larger_one_pays_only_for_the_rest(workshop, prefect_api):
    write_notes(workshop)
    service = Service(2, seconds=PATIENCE, reply=counting)
    with serving(workshop, service) as server:
        workshop.sections["embedding"]["price_per_million_tokens"] = PRICE
        workshop.sections["run"] = {"task_runner": "ray"}
        limits = {"batch_documents": 2, "workers": 2}
        workshop.sections["refresh"] = {**limits, "budget_usd": 8.5 * NOTE_USD}
        report = run_request(RefreshRequest(workshop.settings), Observer(), alone=True)
        assert service.most == 2, "one worker did everything"
        assert len(texts_of(server)) == report.documents.added == len(workshop.rows()) == 8
        assert isinstance(report.error, RefusedError)
        assert f"is reached, ${8 * NOTE_USD:.4f} spent: 4 documents stay as before" in str(report.error)
        workshop.sections["refresh"] = {**limits, "budget_usd": 20 * NOTE_USD}
        report = run_request(RefreshRequest(workshop.settings), Observer(), alone=True)
        assert (report.error, report.documents.added, len(workshop.rows())) == (None, 4, 12)
        assert report.work.cost_usd == pytest.approx(4 * NOTE_USD)
        assert sorted(texts_of(server)) == sorted(set(texts_of(server))), "nothing is paid for twice"


def test_workers_send_texts_to_a_batch_api_and_take_results(tmp_path, prefect_api):
    with BatchServer() as server:
        workshop = batch_workshop(tmp_path, server)
        workshop.sections["run"] = {"task_runner": "ray"}
        workshop.sections["refresh"] = {"batch_documents": 2, "workers": 2}
        request = RefreshRequest(workshop.settings)
        check_lane(workshop, server, lambda: run_request(request, Observer(), alone=True), tmp_path / "threads")


def test_worker_that_is_killed_while_it_sends_to_a_batch_api_buys_nothing_twice(tmp_path, prefect_api):
    machine = Machine()
    with BatchServer() as server:
        workshop = batch_workshop(tmp_path, server)
        workshop.sections["run"] = {"task_runner": "ray"}
        workshop.sections["refresh"] = {"batch_documents": 6, "workers": 1}

        def run():
            return run_request(RefreshRequest(workshop.settings), Observer(), alone=True)

        check_killed_lane(workshop, server, run, machine.kill_worker, ("POST", "/v1/batches"))
    assert machine.killed
    assert not psutil.pid_exists(machine.killed)
