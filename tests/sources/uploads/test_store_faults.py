"""The store of uploads after a crash, on a disk that fails, and beside another writer."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from parquetry.errors import DiskFull, StorageError
from parquetry.sources.uploads import files as module_of_files
from parquetry.sources.uploads import store as module
from parquetry.sources.uploads.store import UploadStore
from tests.sources.uploads.kept_uploads import files, put, settings_of


class Failing:
    """Files that fail at a given change, before or after it is made, as a crash does."""

    def __init__(self, files, fails_at, *, after):
        self._files, self._left, self._after = files, fails_at, after

    def __getattr__(self, name):
        return getattr(self._files, name)

    def _changed(self, change, *values):
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KeyboardInterrupt
        done = change(*values)
        if self._left == 0:
            raise KeyboardInterrupt
        if self._left < 0:
            raise KeyboardInterrupt
        return done

    def write(self, *values):
        return self._changed(self._files.write, *values)

    def delete(self, *values):
        return self._changed(self._files.delete, *values)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("act", ["put", "delete"])
@pytest.mark.parametrize("step", range(1, 5))
def test_crash_at_any_step_leaves_a_whole_upload_or_none(store, tmp_path, monkeypatch, step, act, after):
    put(store, content=b"old")
    crashing = UploadStore(settings_of(tmp_path))
    crashing._files = Failing(crashing._files, step, after=after)
    with suppress(KeyboardInterrupt):
        put(crashing, content=b"new") if act == "put" else crashing.delete("default", "a.md")
    found = store.get("default", "a.md")
    assert found is None if act == "delete" and found is None else store.read(found) in (b"old", b"new")
    put(store, content=b"again")
    assert store.read(store.get("default", "a.md")) == b"again"
    monkeypatch.setattr(module, "_LONGEST_PUT", module.timedelta(0))
    for name in list(store.unnamed()):
        store.delete_file(name)
    assert len(files(tmp_path)) == 2
    assert store.delete("default", "a.md")
    assert files(tmp_path) == []


class Unsynced(Failing):
    """Files of which a change is made, and reported as failed: the disk does not confirm its sync."""

    def _changed(self, change, *values):
        self._left -= 1
        done = change(*values)
        if self._left == 0:
            raise StorageError("the disk does not confirm that it was written")
        return done


def test_manifest_that_is_there_in_spite_of_an_error_keeps_its_bytes(store, tmp_path):
    put(store, content=b"old")
    failing = UploadStore(settings_of(tmp_path))
    failing._files = Unsynced(failing._files, 2, after=True)
    with pytest.raises(StorageError, match="does not confirm"):
        put(failing, content=b"new")
    assert store.read(store.get("default", "a.md")) == b"new"


def test_full_disk_is_an_error_of_the_disk_and_leaves_what_was(store, tmp_path, monkeypatch):
    put(store, content=b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match="uploads"):
        put(store, content=b"new")
    monkeypatch.undo()
    assert store.read(store.get("default", "a.md")) == b"old"
    assert len(files(tmp_path)) == 2


def test_place_that_is_a_file_is_an_error_of_the_disk(tmp_path):
    (tmp_path / "corpus").write_text("a file")
    with pytest.raises(StorageError, match="a file stands there"):
        put(UploadStore(settings_of(tmp_path)))


def test_folder_that_another_process_deletes_meanwhile_is_made_again(store, monkeypatch):
    make, deleted = Path.mkdir, []

    def make_late(folder, *values, **named):
        if not deleted and folder.parent.name == "default":
            folder.parent.rmdir()
            deleted.append(folder.parent)
        make(folder, *values, **named)

    monkeypatch.setattr(Path, "mkdir", make_late)
    put(store, content=b"new")
    assert deleted
    assert store.read(store.get("default", "a.md")) == b"new"


def test_manifest_that_another_process_deletes_each_time_is_written_again(store, monkeypatch):
    move, deleted = Path.replace, []

    def move_late(path, target):
        if path.name.startswith("manifest.json.") and len(deleted) < 15:
            deleted.append(path)
            path.unlink()
        return move(path, target)

    monkeypatch.setattr(Path, "replace", move_late)
    put(store, content=b"new")
    assert len(deleted) == 15
    assert store.read(store.get("default", "a.md")) == b"new"


def test_content_that_is_gone_when_it_is_written_is_not_tried_again(store, monkeypatch, tmp_path):
    tries, written = [], module_of_files._written

    def counted(*values):
        tries.append(values)
        return written(*values)

    monkeypatch.setattr(module_of_files, "_written", counted)
    with pytest.raises(FileNotFoundError):
        store._files.write("default/a", tmp_path / "gone")
    assert len(tries) == 1


WRITER = """
import sys
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
root, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = UploadStore(parse_settings({"corpus": {"root": root}}, "test"))
for number in range(rounds):
    if name == "delete":
        store.delete("default", "a.md")
    else:
        # Every other time the content is one that the other writer has, too.
        content = (name if number % 2 else "same").encode() * 50_000
        store.put("default", "a.md", content, filename="", metadata={"n": number})
"""


def test_writers_and_deleters_of_one_document_never_leave_a_manifest_without_its_bytes(store, tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "corpus"), name, "60"])
        for name in ("one", "two", "delete")
    ]
    try:
        looked = 0
        while any(writer.poll() is None for writer in writers):
            found = store.get("default", "a.md")
            if found is not None and store.get("default", "a.md") == found:
                is_there = store._files.exists(store._place(found))
                # Between the two looks it may have been replaced again.
                assert is_there or store.get("default", "a.md") != found
                looked += 1
        assert looked
    finally:
        for writer in writers:
            writer.kill()
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    put(store, content=b"last")
    assert store.read(store.get("default", "a.md")) == b"last"
