"""The command line detects changed files whose size and time are unchanged."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from tests.opened_files import opened_in
from tests.serving.program import found, settle

pytestmark = pytest.mark.slow

OAK = "The oak table has four legs and costs 700 euros."
ELM = "The elm table has four legs and costs 900 euros."
FILES = ["broken.docx", "empty.txt", "leave.md", "oak.txt", "sub/it's [odd].txt", "sub/leave.md"]


@pytest.fixture
def settled(desk):
    settle(desk)
    return desk


def overwrite(file, text):
    """Write other bytes with the same size and time."""
    status = file.stat()
    assert len(text.encode()) == status.st_size
    file.write_text(text)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def refresh(desk, *options):
    result = desk("refresh", "--direct", "--json", *options)
    assert result.code == 0, result
    return result.json


def counts(report):
    return {name: count for name, count in report["documents"].items() if count}


def costs(report):
    return report["chunks"]["written"], report["chunks"]["embedded"], report["bytes_read"]


UNCHANGED = {"scanned": 6, "unchanged": 4, "failed": 1, "skipped": 1}


def test_unchanged_tree_is_not_read(settled):
    with opened_in(settled.folder / "docs") as opened:
        report = refresh(settled)
    assert (counts(report), opened) == (UNCHANGED, [])


def test_edit_that_keeps_size_and_time_is_noticed(settled):
    overwrite(settled.folder / "docs" / "oak.txt", ELM)
    assert "changed oak.txt (content changed)" in settled("plan").stdout
    assert counts(refresh(settled)) == UNCHANGED | {"changed": 1, "unchanged": 3}
    assert found(settled, "elm table") == [ELM]


def test_folder_that_is_swapped_for_another_is_noticed(settled):
    docs = settled.folder / "docs"
    for name, text in (("now", OAK), ("next", ELM)):
        (docs / name).mkdir()
        (docs / name / "oak.txt").write_text(text)
        os.utime(docs / name / "oak.txt", (1_900_000_000, 1_900_000_000))
    refresh(settled)
    (docs / "now").rename(docs / "before")
    (docs / "next").rename(docs / "now")
    report = refresh(settled)
    assert counts(report)["changed"] == 1
    assert sorted(found(settled, "table", "--filename", "now/oak.txt")) == [ELM]


def retouched(docs):
    """Give the files new change times."""
    for file in FILES:
        (docs / file).chmod(0o600)


def replaced(docs):
    """Give the files new inodes and change times, as `cp -a` does."""
    shutil.copytree(docs, docs.with_name("copy"))
    shutil.rmtree(docs)
    docs.with_name("copy").rename(docs)


@pytest.mark.parametrize("change", [retouched, replaced])
def test_tree_that_was_only_copied_or_touched_is_hashed_once_and_nothing_is_made_anew(settled, change):
    docs = settled.folder / "docs"
    before = {row.path: row.revision for row in rows(settled)}
    change(docs)
    with opened_in(docs) as opened:
        report = refresh(settled)
    assert (counts(report), costs(report)) == (UNCHANGED, (0, 0, 0))
    assert sorted(opened) == FILES
    assert {row.path: row.revision for row in rows(settled)} == before
    # The new change tokens are stored: nothing is hashed again, and nothing more is published.
    with opened_in(docs) as opened:
        again = refresh(settled)
    assert (opened, again["version"]) == ([], report["version"])


def rows(desk):
    return current_rows(Lake(str(desk.folder / "corpus")).snapshot())


def test_corpus_that_knows_files_by_size_and_time_alone_is_refreshed_without_work(settled):
    """Existing corpora are older than the present form of change tokens."""
    docs, lake = settled.folder / "docs", Lake(str(settled.folder / "corpus"))
    known = rows(settled)
    old = [replace(row, etag="-".join(row.etag.split("-")[:2])) for row in known]
    assert old[0].etag == "{0.st_mtime_ns:x}-{0.st_size:x}".format((docs / old[0].path).stat())
    lake.publish(lake.snapshot(), old, "older")
    overwrite(docs / "oak.txt", ELM)
    report = refresh(settled)
    assert counts(report) == UNCHANGED | {"changed": 1, "unchanged": 3}
    assert costs(report) == (1, 1, len(ELM))
    with opened_in(docs) as opened:
        assert refresh(settled)["version"] == report["version"]
    assert opened == []


def test_inodes_do_not_count_where_the_settings_say_so(settled):
    """Some mounts number their files anew each time."""
    file = settled.folder / "parquetry.toml"
    file.write_text(file.read_text() + "[source.options]\ninodes = false\n")
    refresh(settled)
    assert {row.etag.rpartition("-")[2] for row in rows(settled)} == {""}
    overwrite(settled.folder / "docs" / "oak.txt", ELM)
    assert counts(refresh(settled))["changed"] == 1


# --- rehash


def forge(desk, path):
    """Store the file's present change token, as if it had not changed since the last refresh."""
    lake = Lake(str(desk.folder / "corpus"))
    status = (desk.folder / "docs" / path).stat()
    etag = f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ctime_ns:x}-{status.st_ino:x}"
    forged = [replace(row, etag=etag) for row in current_rows(lake.snapshot()) if row.path == path]
    assert len(forged) == 1
    lake.publish(lake.snapshot(), forged, "forged")


def test_rehash_finds_a_change_that_nothing_else_tells(settled):
    overwrite(settled.folder / "docs" / "oak.txt", ELM)
    forge(settled, "oak.txt")
    assert counts(refresh(settled)) == UNCHANGED
    planned = settled("plan", "--rehash")
    assert "changed oak.txt (content changed)" in planned.stdout
    assert planned.stdout.count("changed") == 2
    assert found(settled, "elm table", "--filename", "oak.txt") == [OAK]
    report = refresh(settled, "--rehash")
    assert (counts(report), costs(report)) == (UNCHANGED | {"changed": 1, "unchanged": 3}, (1, 1, len(ELM)))
    assert found(settled, "elm table", "--filename", "oak.txt") == [ELM]


def test_rehash_reads_every_file_and_publishes_nothing_where_nothing_changed(settled):
    version = refresh(settled)["version"]
    with opened_in(settled.folder / "docs") as opened:
        report = refresh(settled, "--rehash")
    assert sorted(opened) == FILES
    assert (counts(report), costs(report), report["version"]) == (UNCHANGED, (0, 0, 0), version)


def test_rehash_of_a_part_reads_that_part(settled):
    with opened_in(settled.folder / "docs") as opened:
        refresh(settled, "--rehash", "docs/sub")
    assert sorted(opened) == ["sub/it's [odd].txt", "sub/leave.md"]


def test_json_of_a_plan_counts_what_rehash_finds(settled):
    overwrite(settled.folder / "docs" / "oak.txt", ELM)
    forge(settled, "oak.txt")
    assert json.loads(settled("plan", "--json").stdout)["documents"]["changed"] == 0
    assert json.loads(settled("plan", "--rehash", "--json").stdout)["documents"]["changed"] == 1
