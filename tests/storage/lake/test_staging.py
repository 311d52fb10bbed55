"""Failures while a commit is being written, and their outcome."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from parquetry.errors import StorageError
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake import staging
from parquetry.storage.lake.commits import commit, open_table
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.shards import Shard
from parquetry.storage.lake.staging import ABANDONED_SECONDS, CHECKPOINT_EVERY, clear_abandoned, commit_name, copy_name


@pytest.fixture
def layout(tmp_path) -> Layout:
    return Lake(str(tmp_path / "corpus"), create=True).layout


def add(layout: Layout, name: str) -> int:
    return commit(layout, "searches", [Shard("searches", name, 1, 1, "0" * 64)], {})


def names(layout: Layout) -> list[str]:
    return sorted(Path(uri).name for uri in open_table(layout, "searches").file_uris())


def test_commits_that_may_not_be_linked_are_copied(layout, monkeypatch):
    """Linux refuses links to files of other users (protected_hardlinks)."""
    add(layout, "a.parquet")
    log, link = Path(layout.log("searches")), os.link

    def protected(source, target):
        if Path(source).parent == log:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(source))
        link(source, target)

    monkeypatch.setattr(os, "link", protected)
    assert add(layout, "b.parquet") == 2
    assert names(layout) == ["a.parquet", "b.parquet"]


def test_somebody_else_who_commits_first_is_followed(layout, monkeypatch):
    add(layout, "a.parquet")
    log, link, others = Path(layout.log("searches")), os.link, ["b.parquet"]

    def late(source, target):
        if Path(target).parent == log and others:
            monkeypatch.setattr(os, "link", link)
            add(layout, others.pop())
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert add(layout, "c.parquet") == 3
    assert names(layout) == ["a.parquet", "b.parquet", "c.parquet"]


def test_commit_is_made_though_no_checkpoint_can_be_written(layout, monkeypatch, caplog):
    for number in range(CHECKPOINT_EVERY - 1):
        add(layout, f"{number}.parquet")
    replace = staging.replace

    def full(source, target):
        if "checkpoint" in Path(target).name:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(staging, "replace", full)
    assert add(layout, "last.parquet") == CHECKPOINT_EVERY
    assert "last.parquet" in names(layout)
    (warning,) = [each.message for each in caplog.records if each.name == "parquetry"]
    assert "no checkpoint of" in warning
    assert "No space left" in warning


def test_commit_that_the_disk_does_not_confirm_is_told_of(layout, monkeypatch):
    add(layout, "a.parquet")
    log, sync = Path(layout.log("searches")), staging.sync

    def broken(path):
        if Path(path) == log:
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(staging, "sync", broken)
    with pytest.raises(StorageError, match="is written, and the disk does not confirm it: Input/output error"):
        add(layout, "b.parquet")
    assert names(layout) == ["a.parquet", "b.parquet"]


def test_what_programs_left_behind_that_died_is_deleted_when_it_is_old(layout):
    add(layout, "a.parquet")
    old, fresh = Path(layout.staging) / "searches-old", Path(layout.staging) / "searches-fresh"
    for each in (old, fresh):
        each.mkdir()
    long_ago = time.time() - ABANDONED_SECONDS - 60
    os.utime(old, (long_ago, long_ago))
    clear_abandoned(layout)
    assert [each.name for each in Path(layout.staging).iterdir()] == [fresh.name]


def test_copy_of_the_newest_commit_alone_is_kept(layout):
    log = Path(layout.log("searches"))
    for name in ("a.parquet", "b.parquet"):
        made = add(layout, name)
        (copy,) = log.glob("*.copy*")
        assert copy.name == copy_name(commit_name(made))
        assert copy.read_bytes() == (log / commit_name(made)).read_bytes()


def test_commit_stands_though_its_copy_cannot_be_written(layout, monkeypatch, caplog):
    def full(_source, target):
        Path(target).touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(staging.shutil, "copyfile", full)
    assert add(layout, "a.parquet") == 1
    assert names(layout) == ["a.parquet"]
    assert "no second copy of" in caplog.text
