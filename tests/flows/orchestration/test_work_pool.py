"""Batches of a flow run on workers of a Prefect work pool, which share only a corpus on object storage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from parquetry.errors import RunSuspended
from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.documents import run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.refresh import run_request
from parquetry.settings.sections import Settings, parse_settings
from parquetry.tasks.engine import work_pool
from parquetry.tasks.engine.base import Cancelled, DirectEngine
from tests.flows.orchestration.corpora import content_of
from tests.flows.orchestration.embedding_service import PATIENCE, Service
from tests.servers.batch_server import BatchServer
from tests.servers.embedding_server import EmbeddingServer, counting
from tests.servers.fault_proxy import FaultProxy

POOL = "machines"
WORKERS = 3
PRICE = 1000.0
"""US dollars per million tokens"""
BUDGET = 1.0
"""US dollars; all documents cost a fifth of it"""


@pytest.fixture
def deployment(prefect_api, tmp_path) -> Iterator[Any]:
    """The deployment as in `prefect.yaml`."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        made = client.create_deployment(
            client.create_flow_from_name("batches"),
            name="parquetry",
            entrypoint="parquetry.flows.batches.batches",
            parameters={"config": str(tmp_path / "kb.toml")},
            work_pool_name=POOL,
            pull_steps=[{"prefect.deployments.steps.set_working_directory": {"directory": "."}}],
        )
        yield client
        client.delete_deployment(made)
        client.delete_work_pool(POOL)


@pytest.fixture
def workers(deployment, prefect_api, s3_server, tmp_path) -> Iterator[None]:
    """Start workers, each with a home and a working folder of its own."""
    started = []
    for number in range(WORKERS):
        folder = tmp_path / f"worker-{number}"
        folder.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "AWS_"))}
        environment |= s3_server.environment()
        environment |= {"HOME": str(folder), "PREFECT_HOME": str(folder / "prefect"), "PREFECT_API_URL": prefect_api}
        environment |= {"PREFECT_WORKER_QUERY_SECONDS": "2", "TMPDIR": str(folder)}
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--limit", "1"]
        with (folder / "log").open("wb") as log:
            started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log))
    yield
    for process in started:
        process.terminate()
    for process in started:
        process.wait(60)


def kill_one(client: Any) -> None:
    """Kill the process of a flow run that is at work."""
    (found, *_) = [run for run in client.read_flow_runs() if run.name.startswith("batch-") and run.state.is_running()]
    os.kill(int(found.infrastructure_pid.rpartition(":")[2]), signal.SIGKILL)


@pytest.mark.timeout(900)
def test_workers_share_only_the_corpus_and_one_of_them_is_killed(deployment, workers, s3_server, monkeypatch, tmp_path):
    """Three workers have a batch each in work when one is killed; the corpus is that of a run in threads.

    Each pays from an allowance. The killed one takes its allowance with it: the flow run that is started in its place
    pays nothing, and its documents are ordered again.
    """
    monkeypatch.setattr(work_pool, "POLL_SECONDS", 0.5)
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.bucket()
    for number in range(WORKERS * 2):
        text = f"# Rule {number}\n\nCount the boards {number + 2} times.\n"
        s3_server.client().put_object(Bucket=bucket, Key=f"docs/{number}.md", Body=text.encode())
    embedding = {"api_key": "key", "dimension": 8, "price_per_million_tokens": PRICE}
    service = Service(WORKERS, PATIENCE, then=lambda: kill_one(deployment), reply=counting)
    with EmbeddingServer(service.answer) as server:

        def settings(root: str, **run: str) -> Settings:
            source = {"name": "docs", "uri": f"s3://{bucket}/docs/"}
            return parse_settings(
                {
                    "corpus": {"root": root, "embedder": "openai:test"},
                    "embedding": {**embedding, "base_url": server.url},
                    "refresh": {"batch_documents": 2, "workers": WORKERS, "budget_usd": BUDGET},
                    "extraction": {"workers": 1},
                    "source": [source],
                    "run": run,
                },
                "test",
            )

        root = f"s3://{bucket}/kb"
        # As in the image of each machine.
        (tmp_path / "kb.toml").write_text(
            f'[corpus]\nroot = "{root}"\nembedder = "openai:test"\n[extraction]\nworkers = 1\n'
            f'[embedding]\nbase_url = "{server.url}"\napi_key = "key"\ndimension = 8\n'
            f"price_per_million_tokens = {PRICE}\n"
        )
        request = RefreshRequest(settings(root, task_runner="work-pool"))
        report = run_request(request, Observer(), alone=True)
        assert service.most == WORKERS, "not all workers took part"
        assert report.documents.added == WORKERS * 2
        assert not report.documents.failed
        runs = [run for run in deployment.read_flow_runs() if run.name.startswith("batch-")]
        states = Counter(run.state.name for run in runs)
        assert states["Completed"] == WORKERS + 1, [(run.name, run.state.name, run.parameters) for run in runs]
        assert states["Crashed"] >= 1
        assert all(len(json.dumps(run.parameters)) < 200 for run in runs), "documents crossed the wire"
        keys = [each["Key"] for each in s3_server.client().list_objects_v2(Bucket=bucket)["Contents"]]
        assert not [key for key in keys if "/orders/" in key]
        paid = sum(len(text.encode()) for request in server.requests for text in request.inputs) * PRICE / 1e6
        assert (report.work.cost_usd or 0) < paid <= BUDGET
        assert "counts as spent in the budget of this run" in str(report.warnings)
        run_refresh(RefreshRequest(settings(str(tmp_path / "threads"))), DirectEngine(), Observer())
        assert content_of(root) == content_of(str(tmp_path / "threads"))


class LosesFirstAnswer:
    """Schedule of a proxy: the server processes the first request that writes, and the client never hears of it."""

    lost = False

    def next(self, *, writing: bool, conditional: bool) -> str | None:
        if not writing or self.lost:
            return None
        self.lost = True
        return "drop"


def test_order_whose_flow_run_was_asked_for_twice_has_one(deployment, tmp_path):
    """Prefect's client asks again when an answer does not arrive, as on a busy machine."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    def cancelled() -> None:
        raise Cancelled("by the test")

    known = {run.id for run in deployment.read_flow_runs()}
    schedule = LosesFirstAnswer()
    with (
        FaultProxy(PREFECT_API_URL.value()) as proxy,
        proxy.failing(schedule),
        temporary_settings({PREFECT_API_URL: f"{proxy.endpoint}/api"}),
        pytest.raises(Cancelled),
    ):
        work_pool.pool_batch.fn(0, "{}", str(tmp_path / "kb"), "batches/parquetry", cancelled)
    assert schedule.lost
    (run,) = [run for run in deployment.read_flow_runs() if run.id not in known]
    assert (run.name, run.state.name) == ("batch-0", "Cancelled")


@pytest.mark.timeout(900)
def test_workers_of_a_pool_send_texts_and_take_results_by_the_settings_of_the_run(
    deployment, workers, s3_server, monkeypatch, tmp_path
):
    """They read settings of their own, which know nothing of the batch API."""
    monkeypatch.setattr(work_pool, "POLL_SECONDS", 0.5)
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.bucket()
    texts = [f"Count the boards {number} times." for number in range(6)]
    for number, text in enumerate(texts):
        s3_server.client().put_object(Bucket=bucket, Key=f"docs/{number}.txt", Body=text.encode())
    with BatchServer() as server:
        embedding = {"base_url": server.url, "api_key": "key", "dimension": 8, "price_per_million_tokens": PRICE}

        def settings(root: str, **sections: dict[str, Any]) -> Settings:
            source = {"name": "docs", "uri": f"s3://{bucket}/docs/"}
            refresh = {"batch_documents": 2, "workers": WORKERS, "budget_usd": BUDGET}
            shared = {"embedding": embedding, "refresh": refresh, "extraction": {"workers": 1}, "source": [source]}
            return parse_settings({"corpus": {"root": root, "embedder": "openai:test"}, **shared, **sections}, "test")

        root = f"s3://{bucket}/kb"
        (tmp_path / "kb.toml").write_text(
            f'[corpus]\nroot = "{root}"\nembedder = "openai:test"\n[extraction]\nworkers = 1\n'
            f'[embedding]\nbase_url = "{server.url}"\napi_key = "key"\ndimension = 8\n'
            f"price_per_million_tokens = {PRICE}\n"
        )
        sends = {"embedding": "always", "price_share": 0.25, "max_requests": 1}
        request = RefreshRequest(settings(root, run={"task_runner": "work-pool"}, batch_api=sends))
        first = run_request(request, Observer(), alone=True)
        assert isinstance(first.error, RunSuspended)
        assert [len(batch.lines) for batch in server.batches] == [1] * 6
        server.complete()
        second = run_request(request, Observer(), alone=True)
        assert (second.error, second.documents.added) == (None, 6)
        assert (server.charged(), server.ordinary, server.files) == (Counter(texts), [], {})
        tokens = sum(len(text.split()) for text in texts)
        assert second.work.cost_usd == pytest.approx(tokens * PRICE / 4e6)
        keys = [each["Key"] for each in s3_server.client().list_objects_v2(Bucket=bucket)["Contents"]]
        assert not [key for key in keys if "/orders/" in key]
        run_refresh(RefreshRequest(settings(str(tmp_path / "threads"))), DirectEngine(), Observer())
        assert content_of(root) == content_of(str(tmp_path / "threads"))
