"""Compaction, vacuum and tags of a corpus on a real S3 server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable

from parquetry.errors import SettingsError
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.lake.retention import add_tag
from parquetry.storage.maintenance.doctor import examine
from tests.storage.maintenance.test_compaction import compacted, everything, stamp
from tests.storage.maintenance.test_vacuum import cleaned
from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(s3_server, monkeypatch, tmp_path):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shelf = Shelf(f"s3://{s3_server.bucket()}/kb")
    shelf.run_ids = "20260101T000000-{:08x}"
    for number in range(4):
        shelf.publish({f"{number % 2}.md": [f"the oak of {number}"]})
    return shelf


def on_store(shelf, table):
    entries = filesystem_at(shelf.root).entries(shelf.lake.layout.table(table))
    return [shelf.lake.layout.shard(table, entry.name) for entry in entries if entry.name.endswith(".parquet")]


def test_corpus_on_an_object_store_is_compacted_and_vacuumed_and_keeps_what_is_tagged(shelf):
    add_tag(shelf.lake.layout, "audit", 2, stamp().at)
    before, tagged = everything(shelf), everything(shelf, 2)
    done = compacted(shelf)
    assert done.files_after == {"documents": 1, "texts": 1, "chunks": 1}
    assert done.rows_dropped == {"documents": 2}
    assert len(cleaned(shelf).files) == 8 + 2
    assert (everything(shelf), everything(shelf, "audit")) == (before, tagged)
    with pytest.raises(SettingsError, match="not kept any more"):
        shelf.lake.snapshot(3)
    for table in ("texts", "chunks"):
        assert on_store(shelf, table) == list(shelf.lake.snapshot().files[table])
    assert [each for each in examine(shelf.lake, shelf.settings).findings if each.severity == "problem"] == []


def test_log_on_an_object_store_is_trimmed(shelf):
    for number in range(2):
        compacted(shelf, days=40 + number)
        shelf.publish({"0.md": [f"the ash of {number}"]})
    before = everything(shelf)
    done = cleaned(shelf)
    newest = shelf.lake.snapshot().version
    assert f"_delta_log/{0:020}.json" in {file.name for file in done.files if file.table == "documents"}
    assert shelf.lake.history()[0].version == newest
    assert everything(shelf) == before
    assert cleaned(shelf).files == ()


def test_tagged_version_outlives_the_log_retention_of_delta_lake(shelf):
    """delta-rs deletes old commits with a checkpoint, unless it is told not to."""
    add_tag(shelf.lake.layout, "audit", 2, stamp().at)
    tagged = everything(shelf, 2)
    options = filesystem_at(shelf.root).table_options()
    opened = DeltaTable(shelf.lake.layout.table("documents"), storage_options=options)
    opened.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 seconds", "delta.checkpointInterval": "7"}
    )
    for number in range(8):
        shelf.publish({"0.md": [f"the ash of {number}"]})
    names = [entry.name for entry in filesystem_at(shelf.root).entries(shelf.lake.layout.log("documents"))]
    assert [name for name in names if name.endswith(".checkpoint.parquet")]
    assert everything(shelf, "audit") == tagged


def test_append_decided_before_a_compaction_lands(shelf, monkeypatch):
    """delta-rs refuses it at first; it is right on any version."""
    from parquetry.storage.lake import commits

    real, raced = commits.open_table, []

    def open_table(layout, table, version=None):
        opened = real(layout, table, version)
        if table == "chunks" and not raced:
            raced.append(True)
            compacted(shelf, days=0)
        return opened

    monkeypatch.setattr(commits, "open_table", open_table)
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    shelf.publish({"late.md": ["a late cedar"]})
    assert raced
    assert shelf.texts()["late.md"] == ["a late cedar"]
    assert [each for each in examine(shelf.lake, shelf.settings).findings if each.severity == "problem"] == []
