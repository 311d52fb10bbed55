"""Documents whose texts workers send through a batch API, and refreshes by orders in this process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from tests.flows.pipelines.batch_workshop import (
    TEXTS,
    batch_workshop,
)
from tests.servers.batch_server import BatchServer
from tests.tasks.documents.orders_engine import OrdersEngine, another_process
from tests.workshop import Workshop

TOKENS = sum(len(text.split()) for text in TEXTS)
"""tokens of all texts, as the service counts them"""
WAITS = {"wait_minutes": 1, "poll_seconds": 0.01}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path: Path, server: BatchServer) -> Workshop:
    """Return a workshop of six documents, of which workers process two at a time."""
    made = batch_workshop(tmp_path, server)
    made.sections["run"] = {"task_runner": "dask"}
    made.sections["refresh"] = {"attempts": 1, "batch_documents": 2, "workers": 2}
    return made


def refresh(workshop: Workshop, engine: OrdersEngine | None = None, **options: object) -> RunReport:
    """Refresh by orders, in workers that have no part in a run before."""
    with another_process():
        return run_refresh(Request(workshop.settings, **options), engine or OrdersEngine(), Observer())


def by_new_workers(execution, _):
    """Execute each order in a process that has no part in the run before, as a work pool does."""
    with another_process():
        return execution()


def sent(server: BatchServer) -> Counter[str]:
    return Counter(line["body"]["input"] for batch in server.batches for line in batch.lines)


def is_for_results(order: str) -> bool:
    return "results_of" in json.loads(order)
