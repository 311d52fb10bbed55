"""A vacuum deletes the part of the log that nothing is read from, and nothing that a repair or a kept version needs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from parquetry.errors import DamagedCorpus
from parquetry.model import Access
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.checksums import recorded_hashes
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import add_tag, delete_tag
from parquetry.storage.lake.rewrite import restore_version
from parquetry.storage.lake.staging import CHECKPOINT, COMMIT, commit_name, number_of
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from parquetry.storage.maintenance.repair import repair
from parquetry.storage.maintenance.vacuum import vacuum
from tests.storage.maintenance.test_compaction import NEWEST_ONLY, compacted, everything, files, stamp
from tests.storage.maintenance.test_vacuum import cleaned
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow


def published(shelf, count, first=0):
    for number in range(first, first + count):
        shelf.publish({f"{number % 3}.md": [f"the oak of {number}"]})


def log_files(shelf, table, pattern=COMMIT):
    names = [path.name for path in Path(shelf.lake.layout.log(table)).iterdir()]
    return sorted(number_of(name) for name in names if pattern.fullmatch(name))


def healthy(shelf):
    checkup = examine(Lake(str(shelf.root)), shelf.settings)
    return [each for each in checkup.findings if each.severity == "problem"] == []


def repaired(shelf):
    for step in repair(str(shelf.root), shelf.settings, stamp(90)):
        step.do()


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Twenty publishes with two compactions among them, each followed by a vacuum."""
    shelf = Shelf(tmp_path_factory.mktemp("grown") / "corpus")
    shelf.run_ids = "20260101T000000-{:08x}"
    shelf.publish({"rare.md": ["a rare yew"]}, namespace="beta")
    published(shelf, 8)
    compacted(shelf)
    cleaned(shelf)
    published(shelf, 8, 8)
    compacted(shelf)
    published(shelf, 4, 16)
    return shelf


@pytest.fixture
def shelf(grown, tmp_path):
    return grown.copied_to(tmp_path / "corpus")


def test_commits_below_the_checkpoint_before_the_last_go_once_their_files_are_gone(shelf):
    before = everything(shelf)
    newest = shelf.lake.snapshot().version
    history = shelf.lake.history()
    first, last = log_files(shelf, "documents", CHECKPOINT)
    assert log_files(shelf, "documents") == [*range(newest + 1)]
    done = cleaned(shelf)
    assert log_files(shelf, "documents") == [*range(first, newest + 1)]
    assert log_files(shelf, "documents", CHECKPOINT) == [first, last]
    assert {file.name for file in done.files if file.table == "documents"} >= {
        f"_delta_log/{commit_name(number)}" for number in range(first)
    }
    assert everything(shelf) == before
    assert healthy(shelf)
    assert shelf.lake.history() == history[: newest + 1 - first]
    assert shelf.lake.history(1) == history[:1]
    assert cleaned(shelf).files == (), "and the next finds nothing"


def test_commits_of_files_that_are_there_stay_with_their_checksums(shelf):
    compacted(shelf)
    published(shelf, 3, 30)
    compacted(shelf)
    cleaned(shelf)
    published(shelf, 3, 40)
    cleaned(shelf)
    for table in ("documents", "texts", "chunks"):
        there = files(shelf, table)
        assert recorded_hashes(shelf.lake.layout, table, there).keys() == set(there)
        assert log_files(shelf, table)[0] > 0


def test_history_with_gaps_keeps_the_numbers_of_its_versions(shelf):
    """An erasure has replaced one file among others, whose commits stay."""
    shelf.publish({"diary.md": ["an oak of ada"]}, access=Access("individual", None, "ada", ()))
    gap = shelf.lake.snapshot().version
    published(shelf, 3, 40)
    forget_user(shelf.lake, "ada", stamp(), shelf.settings)
    history = {each.version: each for each in shelf.lake.history()}
    published(shelf, 60, 50)
    cleaned(shelf)
    left = log_files(shelf, "documents")
    assert {gap - 1, gap + 1} <= set(left)
    assert gap not in left
    found = {each.version: each for each in shelf.lake.history()}
    assert list(found) == left[::-1]
    assert {version: found[version] for version in found if version in history}.items() <= history.items()
    there = files(shelf, "documents")
    assert recorded_hashes(shelf.lake.layout, "documents", there).keys() == set(there)
    assert healthy(shelf)


def test_log_from_the_lowest_kept_version_on_stays_until_its_tag_is_deleted(shelf):
    number = shelf.lake.snapshot().version - 2
    tagged = everything(shelf, number)
    add_tag(shelf.lake.layout, "audit", number, stamp().at)
    for round_ in range(3):
        published(shelf, 3, 60 + 3 * round_)
        compacted(shelf, days=40 + round_)
    cleaned(shelf)
    assert log_files(shelf, "documents", CHECKPOINT)[0] <= number
    assert set(log_files(shelf, "documents")) >= {number, number + 1}
    assert everything(shelf, "audit") == tagged
    assert healthy(shelf)
    delete_tag(shelf.lake.layout, "audit", stamp().at)
    compacted(shelf, days=90)
    cleaned(shelf, days=130)
    assert log_files(shelf, "documents")[0] > number
    assert healthy(shelf)


def test_versions_within_the_retention_can_be_read_after_further_checkpoints(shelf):
    kept = RetentionSettings(days=1, versions=6)
    newest = shelf.lake.snapshot().version
    before = {version: everything(shelf, version) for version in range(newest - 3, newest + 1)}
    for days in (41, 42):
        compacted(shelf, kept, days)
        cleaned(shelf, kept, days + 2)
    assert {version: everything(shelf, version) for version in before} == before
    restore_version(shelf.lake, newest - 3, stamp(90))
    assert shelf.texts() == shelf.texts(newest - 3)


@pytest.mark.parametrize("table", ["documents", "chunks"])
def test_lost_checkpoint_is_repaired_from_the_one_before(shelf, table):
    cleaned(shelf)
    before = everything(shelf)
    last = log_files(shelf, table, CHECKPOINT)[-1]
    path = Path(shelf.lake.layout.log(table)) / f"{last:020}.checkpoint.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DamagedCorpus):
        Lake(str(shelf.root)).snapshot()
    repaired(shelf)
    assert everything(shelf) == before
    assert healthy(shelf)


def test_lost_commit_is_written_again_though_that_of_the_publish_before_it_is_gone(shelf):
    """The checkpoint tells the number of the last publish to its namespace."""
    cleaned(shelf)
    published(shelf, 3, 65)
    shelf.publish({"rare.md": ["another yew"]}, namespace="beta")
    lost = Path(shelf.lake.layout.log("documents")) / commit_name(shelf.lake.snapshot().version)
    published(shelf, 1, 70)
    assert log_files(shelf, "documents", CHECKPOINT)[-1] < number_of(lost.name)
    before = everything(shelf)
    lost.write_bytes(lost.read_bytes()[:200])
    repaired(shelf)
    assert everything(shelf) == before
    assert healthy(shelf)


def test_checkpoint_alone_is_no_reason_for_a_vacuum(tmp_path):
    """Files that were replaced today are there, and so are the commits that added them."""
    shelf = Shelf(tmp_path / "corpus")
    shelf.run_ids = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{{:08x}}"
    published(shelf, 51)
    compacted(shelf, days=0)
    assert log_files(shelf, "documents", CHECKPOINT) == [25, 50, 52]
    assert vacuum(shelf.lake, NEWEST_ONLY, stamp()).files == ()


def test_log_with_damage_is_left_as_it_is(shelf):
    path = Path(shelf.lake.layout.log("chunks")) / commit_name(2)
    path.write_bytes(path.read_bytes()[:100])
    before = {table: log_files(shelf, table) for table in TABLES if Path(shelf.lake.layout.log(table)).exists()}
    cleaned(shelf)
    assert log_files(shelf, "chunks") == before["chunks"]
    assert log_files(shelf, "documents") != before["documents"]
