"""Batches of a flow run on workers of Ray."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="the extra `ray` is not installed: pip install -c constraints.txt '.[ray]'")

from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.refresh import run_request
from tests.flows.orchestration.corpora import content_of
from tests.flows.orchestration.embedding_service import PATIENCE, Service, serving, write_library

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_corpus_of_workers_of_ray_is_that_of_threads(workshop, prefect_api, tmp_path, monkeypatch):
    # Ray would look for a cluster, and write below /tmp.
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    write_library(workshop, 8)
    service = Service(2, PATIENCE)
    with serving(workshop, service):
        workshop.sections |= {"run": {"task_runner": "ray"}, "refresh": {"batch_documents": 2, "workers": 2}}
        report = run_request(RefreshRequest(workshop.settings), Observer(), alone=True)
        assert service.most == 2, "one worker did everything"
        assert report.documents.added == 8
        distributed = content_of(workshop.settings.corpus.root)
        workshop.sections |= {"run": {}, "corpus": {"embedder": "openai:test", "root": str(tmp_path / "threads")}}
        workshop.refresh()
        assert distributed == content_of(workshop.settings.corpus.root)
