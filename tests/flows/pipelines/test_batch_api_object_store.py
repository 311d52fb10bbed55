"""The record of batches beside a corpus in a bucket: nothing of it is on this machine."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from parquetry.storage.files.filesystem import filesystem_at
from tests.flows.pipelines.batch_workshop import TEXTS, WORDS
from tests.servers.batch_server import BatchServer
from tests.workshop import Workshop

pytestmark = pytest.mark.slow


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def workshop(s3_server, server, monkeypatch, tmp_path) -> Workshop:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Workshop(tmp_path)
    made.sections |= {
        "corpus": {"root": f"s3://{s3_server.bucket('batches')}/kb", "embedder": "openai:m"},
        "embedding": {"base_url": server.url, "api_key": "x", "dimension": 8, "attempts": 1},
        "batch_api": {"embedding": "always"},
    }
    for word, text in zip(WORDS, TEXTS, strict=True):
        made.write(f"{word}.md", text)
    return made


def test_batch_of_a_corpus_in_a_bucket_is_sent_once_and_taken_by_a_later_run(workshop, server):
    assert workshop.refresh().error.exit_code == 6
    assert workshop.refresh().error.exit_code == 6
    server.complete()
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert server.charged() == Counter(TEXTS)
    folder = f"{workshop.settings.corpus.root}/batches"
    names = [entry.name for entry in filesystem_at(folder).entries(folder)]
    assert names == [f"00000001-{step}.json" for step in ("claim", "decision", "end", "sent")]
    assert not (workshop.root / "corpus").exists()


def test_of_two_runs_at_the_same_moment_one_sends_each_text(workshop, server):
    threads = [threading.Thread(target=workshop.refresh) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(line["body"]["input"] for batch in server.batches for line in batch.lines) == Counter(TEXTS)
