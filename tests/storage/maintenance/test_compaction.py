"""Compaction keeps everything that a kept version shows, and drops the rest."""

from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from parquetry.errors import DamagedCorpus, PublishConflict, SettingsError
from parquetry.model import Access
from parquetry.planning.rows import RunStamp
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.files.layout import is_compacted
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake import replace_files
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import add_tag, read_retention
from parquetry.storage.lake.rewrite import restore_version
from parquetry.storage.maintenance import compaction, doctor
from parquetry.storage.maintenance.compaction import compact
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.overview import overview_of
from parquetry.storage.maintenance.repair import repair
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

NEWEST_ONLY = RetentionSettings(days=1, versions=1)
EVERYTHING = RetentionSettings(days=1, versions=1_000_000)


def stamp(days=0):
    """Return the stamp of a run that begins in so many days."""
    at = datetime.now(UTC) + timedelta(days=days)
    stamp.number = getattr(stamp, "number", 0) + 1
    return RunStamp(f"{at:%Y%m%dT%H%M%S}-{stamp.number:08x}", at)


def compacted(shelf, retention=NEWEST_ONLY, days=40):
    return compact(shelf.lake, retention, shelf.settings, stamp(days))


def files(shelf, table):
    return [Path(file).name for file in shelf.lake.snapshot().files[table]]


def rows_of(shelf, table):
    return sum(pq.read_metadata(file).num_rows for file in shelf.lake.snapshot().files[table])


def everything(shelf, version=None):
    """Return all visible rows of a version, with vectors."""
    with shelf.connect(version) as connection:
        return [
            connection.execute(f"SELECT * EXCLUDE (run_id) FROM {view} ORDER BY ALL").fetchall()
            if view == "documents"
            else connection.execute(f"SELECT * FROM {view} ORDER BY ALL").fetchall()
            for view in ("documents", "chunks", "texts")
        ]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Twelve publishes: documents that changed, one that was removed, and permissions."""
    shelf = Shelf(tmp_path_factory.mktemp("published") / "corpus")
    shelf.run_ids = "20260101T000000-{:08x}"
    for number in range(10):
        shelf.publish(
            {f"{number % 4}.md": [f"the oak of {number}", "and an elm"], f"new{number}.md": [f"ash {number}"]}
        )
    shelf.remove("new3.md")
    shelf.permit("1.md", Access("individual", None, "ada", ()))
    return shelf


@pytest.fixture
def shelf(published, tmp_path):
    return published.copied_to(tmp_path / "corpus")


def test_small_shards_become_one_and_every_row_that_is_visible_stays(shelf):
    before, found = everything(shelf), shelf.search("oak", [1, 0, 0, 0], mode="hybrid", k=20)
    done = compacted(shelf)
    assert done.files_before == {"documents": 12, "texts": 10, "chunks": 10}
    assert done.files_after == {"documents": 1, "texts": 1, "chunks": 1}
    assert [len(files(shelf, table)) for table in ("documents", "texts", "chunks")] == [1, 1, 1]
    assert all(is_compacted(name) for name in files(shelf, "chunks"))
    assert everything(shelf) == before
    assert shelf.search("oak", [1, 0, 0, 0], mode="hybrid", k=20) == found
    assert examine(shelf.lake, shelf.settings).healthy


def test_rows_that_no_kept_version_needs_are_dropped(shelf):
    done = compacted(shelf)
    # Six superseded revisions of two chunks, one removed document of one, and rows of both.
    assert done.rows_dropped == {"documents": 6 + 2 + 1, "texts": 7, "chunks": 13}
    assert rows_of(shelf, "documents") == 13
    assert rows_of(shelf, "chunks") == 4 * 2 + 9


def test_rows_of_kept_versions_stay_and_each_of_them_can_be_read_and_restored(shelf):
    before = {version: everything(shelf, version) for version in range(1, 13)}
    done = compacted(shelf, EVERYTHING)
    assert (done.horizon, done.rows_dropped) == (0, {})
    assert {version: everything(shelf, version) for version in range(1, 13)} == before
    restore_version(shelf.lake, 4, stamp(40))
    assert shelf.texts() == shelf.texts(4)


def test_tagged_version_below_the_horizon_is_read_and_restored_and_others_are_told_as_given_up(shelf):
    tagged = everything(shelf, 5)
    add_tag(shelf.lake.layout, "audit", 5, stamp().at)
    done = compacted(shelf)
    assert done.horizon == 12
    assert everything(shelf, 5) == everything(shelf, "audit") == tagged
    for version in (4, 6, 11):
        with pytest.raises(SettingsError, match=f"version {version} of corpus .* is not kept any more"):
            shelf.lake.snapshot(version)
        with pytest.raises(SettingsError, match="not kept any more"):
            restore_version(shelf.lake, version, stamp(40))
    restore_version(shelf.lake, "audit", stamp(40))
    assert shelf.texts() == shelf.texts("audit")
    assert examine(shelf.lake, shelf.settings).healthy


def test_nothing_is_dropped_that_was_needed_within_the_retention(shelf):
    """All versions are of today."""
    before = {version: everything(shelf, version) for version in range(1, 13)}
    done = compacted(shelf, days=0)
    assert (done.horizon, done.rows_dropped) == (0, {})
    assert {version: everything(shelf, version) for version in range(1, 13)} == before


def test_second_compaction_has_nothing_to_do(shelf):
    first = compacted(shelf)
    runs = rows_of(shelf, "runs")
    again = compacted(shelf)
    assert not first.is_idle
    assert again.is_idle
    assert (again.version, rows_of(shelf, "runs")) == (first.version, runs)


def test_removed_document_that_comes_back_is_as_any_other(shelf):
    compacted(shelf)
    shelf.publish({"new3.md": ["it is back"]})
    assert shelf.texts()["new3.md"] == ["it is back"]
    compacted(shelf, days=80)
    assert shelf.texts()["new3.md"] == ["it is back"]
    assert examine(shelf.lake, shelf.settings).healthy


def test_revisions_that_are_registered_and_not_named_yet_stay(shelf):
    """A run that goes on has registered its shards, and publishes after the compaction."""
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    rows, run = shelf.write({"late.md": ["a late cedar"]})
    compact(shelf.lake, NEWEST_ONLY, shelf.settings, stamp())
    shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    assert shelf.texts()["late.md"] == ["a late cedar"]
    assert examine(shelf.lake, shelf.settings).healthy


def test_publish_decided_before_a_compaction_meets_a_conflict_and_lands_when_decided_again(shelf):
    base = shelf.lake.snapshot()
    compacted(shelf)
    rows, run = shelf.write({"late.md": ["a late cedar"]})
    with pytest.raises(PublishConflict):
        shelf.lake.publish(base, rows, run)
    shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    assert shelf.texts()["late.md"] == ["a late cedar"]


def test_publish_between_plan_and_commit_of_a_compaction_stays(shelf, monkeypatch):
    real = compaction.replace_files

    def replace(layout, table, *arguments):
        if table == "documents":
            shelf.publish({"late.md": ["a late cedar"], "0.md": ["a changed oak"]})
        return real(layout, table, *arguments)

    monkeypatch.setattr(compaction, "replace_files", replace)
    compacted(shelf)
    texts = shelf.texts()
    assert (texts["late.md"], texts["0.md"]) == (["a late cedar"], ["a changed oak"])
    assert examine(shelf.lake, shelf.settings).healthy


def test_two_compactions_at_once_duplicate_nothing(shelf, monkeypatch):
    before, real = everything(shelf), compaction.replace_files
    raced = []

    def replace(layout, table, *arguments):
        if not raced:
            raced.append(table)
            compacted(shelf)
        return real(layout, table, *arguments)

    monkeypatch.setattr(compaction, "replace_files", replace)
    done = compacted(shelf)
    assert done.is_idle
    assert everything(shelf) == before
    named = {table: files(shelf, table) for table in ("documents", "texts", "chunks")}
    on_disk = {table: [p.name for p in Path(shelf.lake.layout.table(table)).glob("*-compacted-*")] for table in named}
    assert on_disk == named


def test_compaction_between_check_and_commit_of_another_is_a_conflict(shelf, monkeypatch):
    """delta-rs decides here: both replace the same shards."""
    before, real = everything(shelf), replace_files.commit
    raced = []

    def commit(layout, table, *arguments, **options):
        if not raced:
            raced.append(table)
            compacted(shelf)
        return real(layout, table, *arguments, **options)

    monkeypatch.setattr(replace_files, "commit", commit)
    assert compacted(shelf).is_idle
    assert everything(shelf) == before
    assert examine(shelf.lake, shelf.settings).healthy


def test_damaged_shard_is_not_written_again(shelf):
    damaged = Path(shelf.lake.snapshot().files["chunks"][3])
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(DamagedCorpus, match=damaged.name):
        compacted(shelf)
    assert len(files(shelf, "chunks")) == 10


def test_index_follows_without_a_rebuild(shelf, monkeypatch):
    with shelf.index() as connection:
        held = connection.execute("SELECT max(chunk), min(doc) FROM parts.chunks").fetchall()
    dead = [f"rebuilt {name}" for name in ("create_tables",)]
    monkeypatch.setattr("parquetry.storage.index.open_index.create_tables", lambda *_: pytest.fail(dead[0]))
    done = compacted(shelf)
    assert done.index_error is None
    version, found = disagreements(shelf.lake.snapshot(), shelf.settings)
    assert (version, found) == (done.version, [])
    shelf.publish({"late.md": ["a late cedar"]})
    with shelf.index() as connection:
        assert connection.execute("SELECT max(chunk) - 1, min(doc) FROM parts.chunks").fetchall() == held
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (done.version + 1, [])


def test_index_that_lacks_publishes_of_a_compaction_learns_of_them_and_of_removals(shelf, monkeypatch):
    """The index is of a version below the horizon; the rows that say what was removed since are dropped."""
    with shelf.index():
        pass
    shelf.publish({"late.md": ["a late cedar"]})
    shelf.remove("2.md")
    monkeypatch.setattr("parquetry.storage.index.open_index.create_tables", lambda *_: pytest.fail("rebuilt"))
    done = compacted(shelf)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (done.version, [])
    assert [text for text, _ in shelf.search("cedar", mode="text")] == ["a late cedar"]
    assert "2.md" not in shelf.texts()


def test_reader_of_the_version_before_uses_the_later_index(shelf):
    snapshot = shelf.lake.snapshot()
    folder = IndexFolder(snapshot.layout, shelf.settings)
    done = compacted(shelf)
    opened = folder.open(snapshot)
    opened.close()
    assert opened.version == done.version
    assert folder.newest().version == done.version


def test_index_is_rebuilt_after_an_erasure_between_two_versions(shelf):
    """An erasure before the compaction removed rows that the index still holds."""
    from parquetry.storage.maintenance.erasure import forget_user

    shelf.publish({"own.md": ["a secret yew"]}, access=Access("individual", None, "ada", ()))
    with shelf.index():
        pass
    copy = Path(shutil.copytree(shelf.root / "index", shelf.root.parent / "index"))
    forget_user(shelf.lake, "ada", stamp(), shelf.settings)
    compacted(shelf)
    # As an index in the cache of another machine.
    shutil.rmtree(shelf.root / "index")
    shutil.copytree(copy, shelf.root / "index")
    shelf.publish({"late.md": ["a late cedar"]})
    assert "own.md" not in shelf.texts()
    with shelf.index() as connection:
        texts = [text for (text,) in connection.execute("SELECT text FROM parts.chunks").fetchall()]
    assert "a late cedar" in texts
    assert "a secret yew" not in texts


def test_tag_that_cannot_be_read_any_more_does_not_stop_a_compaction(shelf):
    from parquetry.storage.maintenance.erasure import forget_user

    add_tag(shelf.lake.layout, "audit", 12, stamp().at)
    forget_user(shelf.lake, "ada", stamp(), shelf.settings)
    before = everything(shelf)
    compacted(shelf)
    assert everything(shelf) == before
    assert [tag.name for tag in read_retention(shelf.lake.layout).tags] == ["audit"]


def test_vectors_of_replaced_shards_are_found_in_the_new_ones_only(shelf):
    compacted(shelf)
    assert shelf.lake.orphans(shelf.lake.snapshot()) == ()


def test_append_to_a_table_that_was_compacted_since_lands(shelf, caplog):
    lake = Lake(str(shelf.root), create=True)
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    rows, run = shelf.write({"late.md": ["a late cedar"]}, register=True)
    with caplog.at_level(logging.WARNING):
        compacted(shelf, days=0)
    lake.publish(lake.snapshot(), rows, run)
    assert shelf.texts()["late.md"] == ["a late cedar"]
    assert caplog.records == []


@pytest.mark.parametrize("table", ["documents", "chunks", "texts"])
@pytest.mark.parametrize("indexed", [True, False], ids=["with-index", "without-index"])
def test_lost_commit_of_a_compaction_is_written_again_without_the_rows_before(shelf, table, indexed):
    """A repair that only added the new shards would have every row twice."""
    compacted(shelf)
    before = everything(shelf)
    if not indexed:
        IndexFolder(shelf.lake.layout, shelf.settings).clear()
    for commit in sorted(Path(shelf.lake.layout.log(table)).glob(f"{newest_commit(shelf, table)}*")):
        commit.write_bytes(b"")
    for checkpoint in Path(shelf.lake.layout.log(table)).glob("*.checkpoint.*"):
        checkpoint.unlink()
    with pytest.raises(DamagedCorpus):
        shelf.lake.snapshot()
    for step in repair(str(shelf.root), shelf.settings, stamp(40)):
        step.do()
    assert everything(shelf) == before
    assert [each for each in examine(shelf.lake, shelf.settings).findings if each.severity == "problem"] == []


def newest_commit(shelf, table):
    return max(Path(shelf.lake.layout.log(table)).glob("*.json")).name


def test_compaction_alone_makes_a_new_version_for_those_who_follow_the_corpus(shelf):
    """Only chunks are worn; services see that files were replaced by the version of documents."""
    compacted(shelf)
    shelf.run_ids = "20260102T000000-{:08x}"
    for number in range(2):
        shelf.write({f"crashed{number}.md": ["an unnamed fir"]})
    done = compacted(shelf, days=80)
    assert done.files_before == {"documents": 1, "texts": 3, "chunks": 3}
    assert done.version == done.version_before + 1
    assert done.rows_dropped == {"texts": 2, "chunks": 2}


def test_doctor_and_overview_count_small_files_and_what_could_be_given_back(shelf, monkeypatch):
    monkeypatch.setattr(doctor, "MANY_FILES", 11)
    (note,) = examine(shelf.lake, shelf.settings).findings
    assert (note.check, note.severity) == ("small-files", "note")
    assert "12 of documents" in note.detail
    before = {each.table: each for each in overview_of(shelf.lake, shelf.settings).tables}
    assert (before["documents"].small_files, before["documents"].unnamed_bytes) == (12, 0)
    compacted(shelf)
    (note,) = examine(shelf.lake, shelf.settings).findings
    assert (note.check, note.severity, note.count) == ("replaced", "note", 12 + 10 + 10)
    after = {each.table: each for each in overview_of(shelf.lake, shelf.settings).tables}
    assert after["documents"].small_files == 1
    assert after["documents"].unnamed_bytes == before["documents"].bytes
    assert after["documents"].log_files > before["documents"].log_files


def test_index_that_is_behind_a_compaction_is_not_taken_for_lost_commits(shelf, monkeypatch):
    with shelf.index():
        pass
    monkeypatch.setattr(compaction, "bring_index", lambda *_: None)
    compacted(shelf)
    found = examine(shelf.lake, shelf.settings).findings
    assert {each.check for each in found} == {"replaced", "index-behind"}
