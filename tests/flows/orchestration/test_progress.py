"""Progress of a run is visible on the server while the run goes on, and never costs the run anything."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from parquetry.flows.orchestration import progress
from parquetry.flows.pipelines.documents import Request
from parquetry.flows.refresh import run_request
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.sources import providers
from tests import shelf_source
from tests.shelf_source import SHELVES, ShelfSource

PATIENCE = 120
"""maximum seconds for any step on a busy machine"""


@pytest.fixture
def shelf(monkeypatch) -> ShelfSource:
    """Two documents in a batch of their own each, and a run that shows its progress at once."""
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)
    shelf = ShelfSource(a__md="Count the boards.", b__md="Count the nails.")
    monkeypatch.setitem(SHELVES, "desk", shelf)
    return shelf


def settings(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.md").write_text("Count the screws.")
    sources = [{"name": "desk", "uri": "shelf://desk"}, {"name": "other", "uri": str(other)}]
    limits = {"batch_documents": 1, "workers": 1}
    corpus = {"root": str(tmp_path / "corpus")}
    return parse_settings(
        {"corpus": corpus, "source": sources, "refresh": limits, "extraction": {"workers": 1}}, "test"
    )


def artifacts(api: str, key: str) -> list[dict]:
    body = {"artifacts": {"key": {"any_": [key]}}}
    return httpx.post(f"{api}/artifacts/filter", json=body, timeout=PATIENCE).json()


def until(found):
    deadline = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def test_progress_of_each_source_is_seen_while_the_run_goes_on(shelf, prefect_api, records, tmp_path):
    """The last document waits until the others were seen to be done."""
    parsed = settings(tmp_path)
    seen = threading.Event()
    fetched: list[str] = []

    def wait_for_the_test(path: str) -> None:
        fetched.append(path)
        if len(fetched) == len(shelf.contents):
            assert seen.wait(PATIENCE)

    shelf.before_fetch = wait_for_the_test
    before = {each["id"] for each in artifacts(prefect_api, "refresh-sources-default")}

    def look() -> float:
        """Wait until one document of the shelf is done and the other is not; return the percentage."""
        try:
            until(lambda: _half(rows(prefect_api, before)))
            run, bars = flow_run_of(prefect_api, before), artifacts(prefect_api, "refresh-progress-default")
            (bar,) = [each for each in bars if each["flow_run_id"] == run]
            return bar["data"]
        finally:
            seen.set()

    with ThreadPoolExecutor(1) as looker:
        looked = looker.submit(look)
        report = run_request(Request(parsed), Observer())
    assert 0 < looked.result() < 100
    assert report.documents.added == 3
    told = records.artifacts(records.flow_run(parsed.corpus.root))
    assert json.loads(told["refresh-sources-default"]) == [
        {"namespace": "default", "source": "desk", "to do": 2, "done": 2, "failed": 0},
        {"namespace": "default", "source": "other", "to do": 1, "done": 1, "failed": 0},
    ]
    assert told["refresh-progress-default"] == 100


def latest(api: str, before: set[str]) -> dict | None:
    return next((each for each in artifacts(api, "refresh-sources-default") if each["id"] not in before), None)


def flow_run_of(api: str, before: set[str]) -> str:
    found = latest(api, before)
    assert found is not None
    return found["flow_run_id"]


def rows(api: str, before: set[str]) -> dict[str, dict]:
    found = latest(api, before)
    return {row["source"]: row for row in json.loads(found["data"])} if found else {}


def _half(found: dict[str, dict]) -> bool:
    return bool(found) and (found["desk"]["to do"], found["desk"]["done"]) == (2, 1)


def delete_artifact(api: str, artifact: str) -> None:
    """Delete an artifact; Prefect's server answers with 503 while something else writes to its database."""
    deadline = time.monotonic() + PATIENCE
    while (answer := httpx.delete(f"{api}/artifacts/{artifact}", timeout=PATIENCE)).status_code == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    answer.raise_for_status()


def test_run_goes_on_when_its_artifacts_are_deleted(shelf, prefect_api, lines, tmp_path):
    parsed = settings(tmp_path)
    before = {each["id"] for each in artifacts(prefect_api, "refresh-sources-default")}
    gone = threading.Event()

    def delete(_: str) -> None:
        if not gone.is_set():
            run, keys = flow_run_of(prefect_api, before), ("refresh-sources-default", "refresh-progress-default")
            for each in [each for key in keys for each in artifacts(prefect_api, key) if each["flow_run_id"] == run]:
                delete_artifact(prefect_api, each["id"])
            gone.set()

    shelf.before_fetch = delete
    assert run_request(Request(parsed), Observer()).documents.added == 3
    assert gone.is_set()
    assert sum(line.startswith("the run's progress is no longer shown: ") for line in lines.messages) == 1
