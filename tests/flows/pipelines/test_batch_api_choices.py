"""The choice of texts for the batch API: how many at a time, for how much, and the record that is kept of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from parquetry.errors import RefusedError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.sources.uploads.store import UploadStore
from parquetry.tasks.engine.base import DirectEngine
from tests.flows.pipelines.batch_workshop import (
    KEY,
    MOST,
    TEXTS,
    batch_workshop,
    check_all_is_there,
)
from tests.flows.pipelines.test_images import picture
from tests.servers.batch_server import BatchServer
from tests.servers.chat_server import ChatServer, said

pytestmark = pytest.mark.slow


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path, server):
    return batch_workshop(tmp_path, server)


def test_small_work_goes_the_ordinary_way(workshop, server):
    workshop.sections["batch_api"] = {"embedding": "large", "large_tokens": 1000}
    report = workshop.refresh()
    assert (report.error, report.documents.added, server.batches) == (None, 6, [])
    workshop.write("long.md", "word " * 2000)
    assert workshop.plan().estimate.batched == {"openai:m"}
    assert workshop.refresh().error.exit_code == 6


def test_work_on_its_way_is_waited_for_whatever_the_settings_say_by_then(workshop, server):
    workshop.refresh()
    workshop.sections["batch_api"] = {}
    workshop.write("rose.md", "A rose is new.")
    report = workshop.refresh()
    assert (report.documents.added, report.error.exit_code) == (1, 6)
    assert server.charged() == Counter(["A rose is new."])
    server.answer(server.batches[0], 4)
    server.end(server.batches[0], "expired")
    assert workshop.refresh().documents.added == 6
    assert server.charged() == Counter([*TEXTS, "A rose is new."])
    assert len(server.batches) == 1


def test_reindexing_goes_the_ordinary_way(workshop, server):
    workshop.refresh()
    server.complete()
    workshop.refresh()
    request = reindex_request(workshop.settings, (), None, embeddings_only=True)
    report = run_refresh(request, DirectEngine(), Observer())
    assert (report.error, report.work.chunks_embedded, len(server.batches)) == (None, 6, 1)


def test_described_image_does_not_wait_because_its_description_would_be_paid_for_again(workshop, server):
    workshop.write("crane.png", picture())
    workshop.sections["extraction"] = {"workers": 1, "ocr": False, "include_image_descriptions": True}
    with ChatServer([said("A yellow crane.")]) as model:
        workshop.sections["llm"] = {"model": "m", "base_url": model.url}
        report = workshop.refresh()
        assert (report.documents.added, report.error.exit_code) == (1, 6)
        assert [body["input"] for body in server.ordinary] == [["A yellow crane."]]
        server.complete()
        assert workshop.refresh().documents.added == 6


def test_document_that_is_handed_in_does_not_wait(workshop, server):
    settings = workshop.settings
    UploadStore(settings).put("default", "note.md", b"Somebody waits for this.", filename="note.md")
    report = run_refresh(Request(settings, targets=("uploads",)), DirectEngine(), Observer())
    assert (report.error, report.documents.added) == (None, 1)
    assert (len(server.ordinary), server.batches) == (1, [])


def test_files_keep_to_the_limits(workshop, server):
    workshop.sections["batch_api"] |= {"max_requests": 4}
    report = workshop.refresh()
    assert [len(batch.lines) for batch in server.batches] == [4, 2]
    assert report.suspended[0].startswith("6 documents wait for 2 batches of 6 requests")
    server.complete(server.batches[1])
    assert workshop.refresh().documents.added == 2
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_budget_stops_before_a_submission_that_could_pass_it(workshop, server):
    workshop.sections["refresh"] |= {"budget_usd": 2.1 * MOST, "workers": 1}
    plan = workshop.plan()
    assert plan.estimate.expected_usd == pytest.approx(plan.estimate.likely.cost_usd / 2)
    report = workshop.refresh()
    assert isinstance(report.error, RefusedError)
    assert sum(len(batch.lines) for batch in server.batches) == 2
    assert server.ordinary == []
    server.complete()
    report = workshop.refresh()
    assert report.documents.added == 2
    assert sum(len(batch.lines) for batch in server.batches) == 4, "what earlier runs reserved is not charged again"
    workshop.sections["refresh"] = {"attempts": 1}
    server.complete()
    workshop.refresh()
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_refresh_that_is_too_dear_does_not_start_even_as_batches(workshop, server):
    likely = workshop.plan().estimate.expected_usd
    workshop.sections["refresh"] |= {"budget_usd": likely / 2}
    with pytest.raises(RefusedError, match="more than the budget"):
        workshop.refresh()
    assert server.seen == []


def test_record_holds_no_secret_and_no_text(workshop, server):
    workshop.sections["embedding"]["base_url"] = server.url.replace("http://", "http://user:pass-word-x@")
    workshop.refresh()
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)
    folder = Path(workshop.settings.corpus.root, "batches")
    kept = b"".join(file.read_bytes() for file in folder.iterdir())
    assert len(list(folder.iterdir())) == 4
    for secret in (KEY, "pass-word-x", "grows"):
        assert secret.encode() not in kept
    assert folder.stat().st_mode & 0o077 == 0
