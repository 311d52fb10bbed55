"""Compactions keep what a migration has built, and drop what it replaced or gave up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from parquetry.flows.pipelines.migration_plan import (
    abandon_migration,
)
from parquetry.planning.rows import RunStamp
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.database import open_duckdb, sql_list
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.vacuum import vacuum
from tests.flows.pipelines.migration_workshop import (
    TO_NEW,
    embedders,
    migrate,
    migration_workshop,
    texts_sent,
    visible,
)
from tests.servers.embedding_server import EmbeddingServer

pytestmark = pytest.mark.slow


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path, server):
    return migration_workshop(tmp_path, server)


def later(days=40):
    at = datetime.now(UTC) + timedelta(days=days)
    return RunStamp(f"{at:%Y%m%dT%H%M%S}-00000001", at)


def stored_embedders(workshop):
    files = workshop.lake.snapshot().files["chunks"]
    with open_duckdb() as connection:
        found = connection.execute(f"SELECT DISTINCT embedder FROM read_parquet({sql_list(files)})").fetchall()
    return {embedder for (embedder,) in found}


def test_vectors_before_go_with_compaction_and_their_files_with_vacuum(workshop):
    migrate(workshop, TO_NEW)
    migrate(workshop, action="switch")
    now = visible(workshop)
    retention = RetentionSettings(days=1, versions=1)
    compact(workshop.lake, retention, workshop.settings.search, later())
    assert stored_embedders(workshop) == {"openai:tiny/1@8"}
    vacuum(workshop.lake, retention, later(42))
    folder = workshop.root / "corpus" / "chunks"
    assert {file.name for file in folder.glob("*.parquet")} == {
        file.rpartition("/")[2] for file in workshop.lake.snapshot().files["chunks"]
    }
    assert visible(workshop) == now
    with workshop.reader() as reader:
        assert reader.index.connection.execute("SELECT embedder FROM parts.spaces").fetchall() == [("openai:tiny/1@8",)]


def test_compaction_keeps_what_is_built_however_old_it_is(workshop, server):
    migrate(workshop, TO_NEW)
    sent = len(texts_sent(server))
    compact(workshop.lake, RetentionSettings(days=1, versions=1), workshop.settings.search, later())
    assert migrate(workshop, action="switch").documents.changed == 0
    assert len(texts_sent(server)) == sent
    assert embedders(workshop) == {"openai:tiny/1@8"}


def test_abandoned_vectors_go_with_compaction(workshop):
    migrate(workshop, TO_NEW)
    abandon_migration(workshop.settings)
    compact(workshop.lake, RetentionSettings(days=1, versions=1), workshop.settings.search, later())
    assert stored_embedders(workshop) == {"wordllama:l2-supercat/1@256"}
