"""A vacuum deletes what no kept version is read from, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from parquetry.errors import FilesGaveWay, SettingsError, StorageError
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.database import open_duckdb, rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import add_tag, delete_tag
from parquetry.storage.lake.rewrite import restore_version
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from parquetry.storage.maintenance.vacuum import unneeded_files, vacuum
from tests.storage.maintenance.test_compaction import EVERYTHING, NEWEST_ONLY, compacted, everything, files, stamp
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Ten publishes that each change a document and add another."""
    shelf = Shelf(tmp_path_factory.mktemp("published") / "corpus")
    shelf.run_ids = "20260101T000000-{:08x}"
    for number in range(10):
        shelf.publish({f"{number % 3}.md": [f"the oak of {number}"], f"new{number}.md": [f"ash {number}"]})
    return shelf


@pytest.fixture
def shelf(published, tmp_path):
    return published.copied_to(tmp_path / "corpus")


def on_disk(shelf, table):
    return sorted(path.name for path in Path(shelf.lake.layout.table(table)).glob("*.parquet"))


def cleaned(shelf, retention=NEWEST_ONLY, days=80):
    return vacuum(shelf.lake, retention, stamp(days))


def test_replaced_files_are_deleted_and_what_is_visible_stays(shelf):
    before = everything(shelf)
    compacted(shelf)
    done = cleaned(shelf)
    assert {file.table for file in done.files} == {"documents", "texts", "chunks"}
    assert len(done.files) == 30
    for table in ("documents", "texts", "chunks"):
        assert on_disk(shelf, table) == files(shelf, table)
    assert everything(shelf) == before
    checkup = examine(shelf.lake, shelf.settings)
    assert checkup.findings == ()


def test_dry_run_lists_the_same_files_and_deletes_none(shelf):
    compacted(shelf)
    there = on_disk(shelf, "chunks")
    listed = unneeded_files(Lake(str(shelf.root)), NEWEST_ONLY, stamp(80))
    assert on_disk(shelf, "chunks") == there
    assert listed.files == cleaned(shelf).files


def test_files_of_kept_versions_stay_and_each_version_can_be_restored(shelf):
    before = {version: everything(shelf, version) for version in range(1, 11)}
    compacted(shelf, EVERYTHING)
    cleaned(shelf, EVERYTHING)
    assert {version: everything(shelf, version) for version in range(1, 11)} == before
    restore_version(shelf.lake, 3, stamp(80))
    assert shelf.texts() == shelf.texts(3)


def test_files_of_versions_between_the_horizon_and_a_compaction_stay(shelf):
    """They were added after the horizon and replaced before the newest version."""
    kept = RetentionSettings(days=1, versions=4)
    before = {version: everything(shelf, version) for version in (8, 9, 10)}
    compacted(shelf, kept)
    done = cleaned(shelf, RetentionSettings(days=1, versions=4))
    assert done.horizon == 8
    assert {version: everything(shelf, version) for version in (8, 9, 10)} == before


def test_tagged_version_stays_until_its_tag_is_deleted(shelf):
    tagged = everything(shelf, 4)
    add_tag(shelf.lake.layout, "audit", 4, stamp().at)
    compacted(shelf)
    cleaned(shelf)
    assert everything(shelf, "audit") == tagged
    delete_tag(shelf.lake.layout, "audit", stamp().at)
    with pytest.raises(SettingsError, match="not kept any more"):
        shelf.lake.snapshot(4)
    assert {file.table for file in cleaned(shelf, days=90).files} == {"documents"}
    assert len(on_disk(shelf, "documents")) == 1


def test_files_that_were_replaced_today_stay_for_readers_of_the_version_before(shelf):
    opened = shelf.connect()
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    compacted(shelf, days=0)
    assert vacuum(shelf.lake, NEWEST_ONLY, stamp()).files == ()
    assert len(rows(opened, "SELECT text FROM texts")) == 13


def test_reader_of_deleted_files_is_told_to_read_again(shelf):
    opened = shelf.connect()
    compacted(shelf)
    cleaned(shelf)
    with pytest.raises(FilesGaveWay, match="vacuum"):
        rows(opened, "SELECT text FROM texts")


def test_shards_of_a_run_in_flight_stay(shelf):
    """Neither registered shards nor unnamed ones of a run that began within the retention are deleted."""
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    shelf.write({"crashed.md": ["a crashed fir"]}, register=False)
    found, run = shelf.write({"late.md": ["a late cedar"]}, register=False)
    left = {table: on_disk(shelf, table) for table in ("texts", "chunks")}
    assert vacuum(shelf.lake, NEWEST_ONLY, stamp()).files == ()
    assert {table: on_disk(shelf, table) for table in ("texts", "chunks")} == left
    assert (found[0].path, run[:8]) == ("late.md", f"{datetime.now(UTC):%Y%m%d}")


def test_shards_that_a_crashed_run_left_are_deleted_after_the_retention(shelf):
    shelf.write({"crashed.md": ["a crashed fir"]}, register=False)
    assert {file.table for file in cleaned(shelf).files} == {"texts", "chunks"}
    assert examine(shelf.lake, shelf.settings).findings == ()


def test_nothing_is_deleted_if_the_files_of_kept_versions_are_not_known(shelf):
    """A commit below a checkpoint is damaged: the newest version can be read, the files of earlier ones are unknown."""
    from parquetry.storage.lake.staging import make_checkpoint

    compacted(shelf, EVERYTHING)
    make_checkpoint(shelf.lake.layout, "documents")
    (Path(shelf.lake.layout.log("documents")) / f"{5:020}.json").write_bytes(b"{")
    there = on_disk(shelf, "documents")
    with pytest.raises(StorageError, match="cannot be read"):
        cleaned(shelf, EVERYTHING)
    assert on_disk(shelf, "documents") == there


def test_erasure_keeps_earlier_versions_without_rows_of_the_user(shelf):
    """A compaction has replaced their files; those with rows of the user are deleted."""
    from parquetry.model import Access

    tagged = everything(shelf, 4)
    shelf.publish({"own.md": ["a secret yew"]}, access=Access("individual", None, "ada", ()))
    compacted(shelf, EVERYTHING)
    forget_user(shelf.lake, "ada", stamp(), shelf.settings)
    assert everything(shelf, 4) == tagged
    with pytest.raises(SettingsError, match="erased since"):
        shelf.lake.snapshot(11)
    yew = "text LIKE '%yew%'"
    for table, wanted in (("documents", "path = 'own.md'"), ("texts", yew), ("chunks", yew)):
        on_disk = f"{shelf.lake.layout.table(table)}/*.parquet"
        with open_duckdb() as connection:
            found = connection.execute(f"SELECT count(*) FROM read_parquet('{on_disk}') WHERE {wanted}").fetchall()
        assert found == [(0,)], table
