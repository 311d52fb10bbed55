"""A refresh as a flow run, against a real Prefect server: its work, and its traces in the UI."""

from __future__ import annotations

import json
import re
import threading
from datetime import datetime

import pytest

from parquetry.errors import OutageError, RefusedError, SettingsError
from parquetry.flows.orchestration.parameters import RefreshParameters, ReindexParameters
from parquetry.flows.orchestration.report import as_markdown
from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.flows.refresh import refresh, reindex, run_request
from parquetry.planning.report import RunReport
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.sources import providers
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents import reading_progress
from parquetry.tasks.engine import prefect as prefect_engine
from parquetry.tasks.engine import task_retries
from parquetry.tasks.engine.base import Cancelled
from tests import shelf_source
from tests.opened_files import opened_in
from tests.servers.batch_server import BatchServer
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings, refusal
from tests.shelf_source import SHELVES, ShelfSource


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Retry at once, and check for cancellation after every batch."""
    monkeypatch.setattr(task_retries, "FIRST_DELAY_SECONDS", 0.01)
    monkeypatch.setattr(prefect_engine, "POLL_SECONDS", 0.05)


@pytest.fixture
def library(workshop):
    """Six documents that make three batches."""
    workshop.sections["refresh"] = {"batch_documents": 2, "workers": 2, "max_removed_documents": 0}
    for number in range(6):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount the boards {number + 2} times.\n")
    return workshop


def run(workshop, **options) -> RunReport:
    return run_request(RefreshRequest(workshop.settings, **options), options.pop("observer", Observer()))


def root(workshop) -> str:
    return workshop.settings.corpus.root


def test_flow_run_publishes_and_tells_what_it_did(library, records, lines):
    library.write("empty.md", "")
    report = run(library)
    assert report.documents.added == 6
    assert report.documents.skipped == 1
    assert library.lake.snapshot().version == report.version == 1

    flow_run = records.flow_run(root(library))
    assert flow_run.state.is_completed()
    assert re.fullmatch(r"refresh-all-\d{8}-\d{6}", flow_run.name)
    assert set(flow_run.tags) == {"parquetry", "namespace:default", "source:docs"}
    batches = records.task_runs(flow_run, 4)
    assert [each["name"] for each in batches] == ["batch-0", "batch-1", "batch-2", "batch-3"]
    assert {each["state_type"] for each in batches} == {"COMPLETED"}
    # Before each task with tags, Prefect asks its server for a slot of their limits.
    assert not any(each["tags"] for each in batches)

    artifacts = records.artifacts(flow_run)
    names = ("report", "failures", "progress", "sources")
    assert set(artifacts) == {f"refresh-{name}-default" for name in names}
    assert artifacts["refresh-progress-default"] == 100
    (row,) = json.loads(artifacts["refresh-sources-default"])
    assert row == {"namespace": "default", "source": "docs", "to do": 7, "done": 7, "failed": 0}
    assert "| added | 6 |" in artifacts["refresh-report-default"]
    assert "Version 0 -> **1**" in artifacts["refresh-report-default"]
    assert "| extract/empty | 1 |" in artifacts["refresh-report-default"]
    (row,) = json.loads(artifacts["refresh-failures-default"])
    assert row["uri"].endswith("/empty.md")
    assert (row["status"], row["reason"]) == ("skipped", "empty")

    assert "docs: 7 documents, 7 to do" in lines.messages
    assert "published version 1: 7 scanned, 6 added, 1 skipped" in lines.messages
    assert any(message.startswith("7 of 7 documents; batch ") for message in lines.messages)


def test_second_run_does_nothing_and_says_so(library, records, lines):
    run(library)
    report = run(library)
    assert report.version == 1
    latest = records.flow_runs(root(library))[0]
    assert records.task_runs(latest, 0) == []
    assert "nothing to publish, still version 1: 6 scanned, 6 unchanged" in lines.messages
    assert "Nothing to publish" in records.artifacts(latest)["refresh-report-default"]


def test_no_more_batches_at_work_than_the_settings_allow(library, records):
    library.sections["refresh"]["batch_documents"] = 1
    run(library)
    batches = records.task_runs(records.flow_run(root(library)), 6)
    moments = sorted(
        (datetime.fromisoformat(each[key]), change)
        for each in batches
        for key, change in (("start_time", 1), ("end_time", -1))
    )
    at_work, most = 0, 0
    for _, change in moments:
        at_work += change
        most = max(most, at_work)
    assert most <= 2


class Service:
    """An embedding service that refuses texts about walnut for a while."""

    def __init__(self, refusals: int, status: int) -> None:
        self.left, self.status = refusals, status

    def __call__(self, request: Request) -> Reply:
        if self.left and any("walnut" in text for text in request.inputs):
            self.left -= 1
            return refusal(self.status, "not now")
        return embeddings(request)


def embedded_by(library, server: EmbeddingServer) -> None:
    library.sections["corpus"] = {"embedder": "openai:test"}
    library.sections["embedding"] = {"base_url": server.url, "api_key": "x", "attempts": 1, "dimension": 8}
    library.write("2.md", "# Wood\n\nThe walnut is late.\n")


def test_transient_failure_is_tried_again_and_nothing_is_lost(library, records):
    with EmbeddingServer(Service(refusals=2, status=503)) as server:
        embedded_by(library, server)
        report = run(library)
    assert report.documents.added == 6
    assert report.documents.failed == 0
    batches = records.task_runs(records.flow_run(root(library)), 3)
    assert sorted(each["run_count"] for each in batches) == [1, 1, 3]


def test_failure_that_does_not_pass_costs_its_batch_alone(library, records, lines):
    with EmbeddingServer(Service(refusals=1000, status=503)) as server:
        embedded_by(library, server)
        report = run(library)
    assert (report.documents.added, report.documents.failed) == (4, 2)
    flow_run = records.flow_run(root(library))
    assert flow_run.state.is_completed()
    batches = records.task_runs(flow_run, 3)
    assert sorted((each["run_count"], each["state_type"]) for each in batches) == [
        (1, "COMPLETED"),
        (1, "COMPLETED"),
        (3, "FAILED"),
    ]
    rows = json.loads(records.artifacts(flow_run)["refresh-failures-default"])
    assert {row["uri"].rpartition("/")[2] for row in rows} >= {"2.md"}
    assert len(rows) == 2
    assert any(message.startswith("batch ") and "failed" in message for message in lines.messages)


def test_service_that_turns_the_account_away_is_not_tried_again_and_fails_the_run(library, records):
    with EmbeddingServer(Service(refusals=1000, status=401)) as server:
        embedded_by(library, server)
        report = run(library)
        assert sum(any("walnut" in text for text in request.inputs) for request in server.requests) == 1
    flow_run = records.flow_run(root(library))
    assert flow_run.state.is_failed()
    assert "(service-refused: " in flow_run.state.message
    assert "not now" in flow_run.state.message
    assert (len(report.outages), report.version, library.lake.snapshot().version) == (1, 1, 1)


@pytest.mark.slow
def test_outage_fails_the_flow_run_with_its_report_and_publishes_what_is_good(library, records, lines):
    with EmbeddingServer(lambda _: refusal(503, "closed")) as server:
        embedded_by(library, server)
        report = run(library)
    (outage,) = report.outages
    assert "source docs: the embedding service failed 6 of 6 documents (service-failed: " in outage
    flow_run = records.flow_run(root(library))
    assert flow_run.state.is_failed()
    assert outage in flow_run.state.message
    assert f"failed: {outage}" in lines.messages
    artifacts = records.artifacts(flow_run)
    assert f"**Failed:** {as_markdown(outage)}" in artifacts["refresh-report-default"]
    assert len(json.loads(artifacts["refresh-failures-default"])) == 6
    with library.reader().connection as connection:
        assert connection.execute("SELECT status, error, skipped FROM runs").fetchall() == [("failed", outage, 0)]


@pytest.mark.slow
def test_outage_in_a_deployment_is_raised(library, tmp_path, records):
    with EmbeddingServer(lambda _: refusal(503, "closed")) as server:
        file = tmp_path / "parquetry.toml"
        file.write_text(
            f'[corpus]\nroot = "{root(library)}"\nembedder = "openai:m"\n[extraction]\nworkers = 1\n'
            f'[embedding]\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\ndimension = 8\n'
            f'[[source]]\nname = "docs"\nuri = "{library.folder}"\n'
        )
        with pytest.raises(OutageError, match="the embedding service failed 6 of 6 documents"):
            refresh(config=str(file))


def test_run_that_waits_for_a_batch_is_completed_under_a_name_of_its_own(library, records, lines):
    with BatchServer() as server:
        library.sections |= {
            "corpus": {"embedder": "openai:m"},
            "embedding": {"base_url": server.url, "api_key": "x", "attempts": 1, "dimension": 8},
            "batch_api": {"embedding": "always"},
        }
        report = run(library)
        assert (report.error.exit_code, report.documents.added) == (6, 0)
        state = records.flow_run(root(library)).state
        assert (state.name, state.is_completed()) == ("AwaitsBatch", True)
        assert state.message.startswith("6 documents wait for 1 batch of ")
        assert any(message.startswith("batch 1 sent: ") for message in lines.messages)
        server.complete()
        assert (run(library).documents.added, library.lake.snapshot().version) == (6, 1)


class CancelsAfterOneBatch(Observer):
    """Cancel the flow run, as a user in the UI does, when the first batch is done."""

    def __init__(self, records, corpus: str) -> None:
        self.records, self.corpus = records, corpus
        self.batches = 0

    def batch_done(self, report) -> None:
        from prefect.states import Cancelling

        if not self.batches:
            self.records.client.set_flow_run_state(self.records.flow_run(self.corpus).id, Cancelling())
        self.batches += 1


def test_document_that_takes_long_is_named_in_the_log_before_it_is_read(tmp_path, records, lines, monkeypatch):
    monkeypatch.setattr(reading_progress, "LONG_SECONDS", 0.0)
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    shelf, told = ShelfSource(**{"handbook__md": "Count twice."}), threading.Event()
    monkeypatch.setitem(SHELVES, "slow", shelf)

    class Hears(Observer):
        read = 0

        def document_read(self):
            assert told.is_set()
            self.read += 1

        def document_slow(self, slow):
            told.set()

    shelf.before_fetch = lambda _: told.wait(60) or pytest.fail("nobody was told")
    corpus, source = {"root": str(tmp_path / "corpus")}, {"name": "docs", "uri": "shelf://slow"}
    hears = Hears()
    settings = parse_settings({"corpus": corpus, "source": [source], "extraction": {"workers": 1}}, "test")
    report = run_request(RefreshRequest(settings), hears)
    assert (report.documents.added, hears.read) == (1, 1)
    assert any(re.fullmatch(r"reading handbook\.md \(\d+ s\)", message) for message in lines.messages)


def test_cancelled_run_publishes_nothing_and_ends_as_cancelled(library, records):
    library.sections["refresh"] |= {"batch_documents": 1, "workers": 1}
    watcher = CancelsAfterOneBatch(records, root(library))
    with pytest.raises(Cancelled, match="nothing was published"):
        run_request(RefreshRequest(library.settings), watcher)
    assert 1 <= watcher.batches < 6
    assert library.lake.snapshot().version == 0
    assert records.flow_run(root(library)).state.is_cancelled()
    assert run(library).documents.added == 6


def test_refused_source_fails_the_flow_run_with_what_to_do(library, records):
    run(library)
    for number in range(4):
        (library.folder / f"{number}.md").unlink()
    report = run(library)
    assert len(report.refused) == 1
    latest = records.flow_runs(root(library))[0]
    # A failed run with its own state name, which automations can match.
    assert (latest.state.type.value, latest.state.name) == ("FAILED", "Refused")
    assert "allow" in latest.state.message
    assert "**Refused:**" in records.artifacts(latest)["refresh-report-default"]
    assert run(library, allow_removals=True).documents.removed == 4


def write_settings(library, tmp_path) -> str:
    file = tmp_path / "parquetry.toml"
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\n'
    file.write_text(f'[corpus]\nroot = "{root(library)}"\n[extraction]\nworkers = 1\n{source}')
    return str(file)


def test_flows_called_by_a_deployment_read_the_settings_file(library, tmp_path, records):
    file = write_settings(library, tmp_path)
    report = refresh(RefreshParameters(targets=["docs"]), config=file)
    assert report["documents"]["added"] == 6
    again = reindex(ReindexParameters(documents=["0.md", "1.md"]), config=file)
    assert again["documents"]["changed"] == 2
    assert again["version"] == 2
    assert library.lake.snapshot().version == 2
    with pytest.raises(SettingsError, match="no document"):
        reindex(ReindexParameters(documents=["missing.md"]), config=file)


def test_flow_that_is_asked_to_looks_at_every_byte(library, tmp_path, records):
    file = write_settings(library, tmp_path)
    version = refresh(config=file)["version"]
    with opened_in(library.folder) as opened:
        assert refresh(config=file)["documents"]["unchanged"] == 6
    assert opened == []
    with opened_in(library.folder) as opened:
        assert refresh(RefreshParameters(rehash=True), config=file)["version"] == version
    assert len(set(opened)) == 6


def test_refusal_in_a_deployment_is_raised(library, tmp_path, records):
    file = write_settings(library, tmp_path)
    refresh(config=file)
    for each in library.folder.iterdir():
        each.unlink()
    library.write("new.md", "# New\n\nOne.\n")
    for number in range(20):
        library.write(f"more-{number}.md", f"# More\n\n{number}.\n")
    refresh(RefreshParameters(allow_removals=True), config=file)
    for number in range(15):
        (library.folder / f"more-{number}.md").unlink()
    with pytest.raises(RefusedError, match="allow"):
        refresh(config=file)


def test_budget_ends_the_flow_run_as_refused(library, records):
    library.sections["corpus"] = {"embedder": "openai:m"}
    library.sections["embedding"] = {"base_url": "http://127.0.0.1:9/v1", "price_per_million_tokens": 1000.0}
    library.sections["embedding"] |= {"dimension": 8, "api_key": "x"}
    library.sections["refresh"] |= {"budget_usd": 0.000001}
    with pytest.raises(RefusedError, match="budget"):
        run(library)
    state = records.flow_run(root(library)).state
    assert (state.type.value, state.name) == ("FAILED", "Refused")
    assert "budget" in state.message
    assert not Lake.exists(root(library)), "a first run that comes to nothing leaves no corpus"


def test_reindex_of_a_deployment_has_to_say_what(library, tmp_path, records):
    """Otherwise one click in the UI would rebuild everything."""
    file = write_settings(library, tmp_path)
    refresh(config=file)
    with pytest.raises(SettingsError, match=r'"documents" or "all": true, and neither is given; nothing was done'):
        reindex(config=file)
    with pytest.raises(SettingsError, match="and both are given"):
        reindex(ReindexParameters(documents=["0.md"], all=True), config=file)
    assert library.lake.snapshot().version == 1
    assert reindex(ReindexParameters(all=True), config=file)["documents"]["changed"] == 6


def test_run_names_tell_what_the_run_is_about():
    assert RefreshParameters().subject() == "all"
    assert RefreshParameters(namespace="hr").subject() == "hr"
    assert RefreshParameters(targets=["./docs/people/"]).subject() == "people"
    assert RefreshParameters(namespace="hr", targets=["a", "b", "c"]).subject() == "hr:a+2"
    assert ReindexParameters(all=True).subject() == "all"
    assert ReindexParameters(documents=["*.pdf"]).subject() == "*.pdf"


def test_reindex_in_this_process_redoes_the_documents_it_names(library, records):
    run(library)
    request = reindex_request(library.settings, ("0.md",), None, embeddings_only=False)
    assert run_request(request, Observer()).documents.changed == 1
    latest = records.flow_runs(root(library))[0]
    assert latest.name.startswith("reindex-all-")
    assert "# Reindex" in records.artifacts(latest)["reindex-report-default"]
