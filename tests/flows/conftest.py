"""Fixtures for tests of flow runs: the API's records and the log lines of the runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import session_model
from tests.servers.chat_server import ChatServer


class Records:
    """Records of the flow runs of a test at Prefect: an earlier test may have had a folder of the same path."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._earlier = {run.id for run in self._newest()}

    def _newest(self) -> list[Any]:
        from prefect.client.schemas.sorting import FlowRunSort

        runs: list[Any] = self.client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=200)
        return runs

    def flow_run(self, corpus: str) -> Any:
        """Return the one flow run of a corpus that no other test uses."""
        (run,) = self.flow_runs(corpus)
        return run

    def flow_runs(self, corpus: str) -> list[Any]:
        """Return the flow runs of a corpus, newest first."""
        return [run for run in self._newest() if run.id not in self._earlier and run.parameters.get("corpus") == corpus]

    def task_runs(self, run: Any, expected: int) -> list[Any]:
        """Return the task runs of a flow run, by name; they arrive a moment after the flow run ended."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            answer = self.client.request(
                "POST", "/task_runs/filter", json={"flow_runs": {"id": {"any_": [str(run.id)]}}, "limit": 200}
            ).json()
            if len(answer) == expected and all(each["end_time"] for each in answer):
                return sorted(answer, key=lambda each: each["name"])
            time.sleep(0.1)
        raise AssertionError(f"{len(answer)} task runs, expected {expected}: {answer}")

    def artifacts(self, run: Any) -> dict[str, str]:
        """Return key -> data of the artifacts of a flow run."""
        answer = self.client.request(
            "POST", "/artifacts/filter", json={"artifacts": {"flow_run_id": {"any_": [str(run.id)]}}}
        ).json()
        return {each["key"]: each["data"] for each in answer}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A scripted language model."""
    with ChatServer(session_model.answer) as server:
        yield server


@pytest.fixture
def records(prefect_api: str) -> Iterator[Records]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        yield Records(client)


class Lines(logging.Handler):
    """The log messages of flow and task runs, with a callback for each message."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []
        self.on_message: Callable[[str], None] = lambda _: None

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.on_message(record.getMessage())


@pytest.fixture
def lines(prefect_api: str) -> Iterator[Lines]:
    handler = Lines()
    loggers = [logging.getLogger("prefect.flow_runs"), logging.getLogger("prefect.task_runs")]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)
