"""Archives that are damaged, changed or removed are reported, and never taken for smaller ones."""

import os
import random

import pytest

from parquetry.errors import DocumentError, TransientError
from parquetry.model import Item
from tests.sources.packed import KINDS, TEXTS, local, read, tarred, unlisted, zipped


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.95])
def test_archive_that_is_cut_short_is_never_taken_for_a_smaller_one(tmp_path, kind, share):
    """A copy in progress would otherwise remove the documents that have not arrived yet."""
    content = KINDS[kind]({f"{number}.txt": os.urandom(3000) for number in range(20)})
    content = content.rstrip(b"\0") if kind == "a.tar" else content
    (tmp_path / kind).write_bytes(content[: int(len(content) * share)])
    assert unlisted(local(tmp_path)) == [kind]


@pytest.mark.parametrize("kind", ["a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"])
def test_compressed_tar_without_its_last_bytes_is_damaged(tmp_path, kind):
    """The checksum is at the end: without it, the rest cannot be verified."""
    (tmp_path / kind).write_bytes(KINDS[kind](TEXTS)[:-4])
    assert unlisted(local(tmp_path)) == [kind]


def test_tar_that_ends_after_a_member_without_its_end_mark_is_damaged(tmp_path):
    whole = tarred({f"{number}.txt": bytes([65 + number]) * 512 for number in range(8)})
    (tmp_path / "a.tar").write_bytes(whole[: 5 * 1024])
    assert unlisted(local(tmp_path)) == ["a.tar"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_damage_anywhere_is_told_and_never_a_crash(tmp_path, kind, seed):
    generator = random.Random(seed)
    content = bytearray(KINDS[kind](TEXTS))
    for _ in range(generator.randint(1, 8)):
        content[generator.randrange(len(content))] = generator.randrange(256)
    (tmp_path / kind).write_bytes(content)
    source = local(tmp_path)
    for item in source.scan(""):
        if isinstance(item, Item):
            try:
                source.fetch(item)
            except (DocumentError, TransientError, FileNotFoundError):
                continue


def test_archive_that_vanished_after_the_scan_is_read_as_it_was_or_told(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    source = local(tmp_path)
    items = list(source.scan(""))
    (tmp_path / "a.zip").unlink()
    assert source.fetch(items[0])[1] == TEXTS["read.md"]
    with pytest.raises(FileNotFoundError):
        local(tmp_path).fetch(items[0])


def test_listing_again_sees_an_archive_as_it_is_by_then(tmp_path):
    source = local(tmp_path)
    (tmp_path / "a.zip").write_bytes(zipped({"old.md": b"old"}))
    assert set(read(source)) == {"a.zip!/old.md"}
    (tmp_path / "a.zip").write_bytes(zipped({"new.md": b"new and longer"}))
    assert read(source) == {"a.zip!/new.md": b"new and longer"}


def test_damaged_member_is_another_one_once_its_archive_was_repaired(tmp_path):
    """The checksum in the table of contents was right all the time."""
    whole = zipped({"a.md": b"x" * 1000})
    damaged = bytearray(whole)
    damaged[40] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(damaged)
    (before,) = local(tmp_path).scan("")
    (tmp_path / "a.zip").write_bytes(whole)
    os.utime(tmp_path / "a.zip", (1_950_000_000, 1_950_000_000))
    (after,) = local(tmp_path).scan("")
    assert before.etag != after.etag


def test_member_that_is_not_in_the_archive_any_more_is_a_file_not_found(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    items = list(local(tmp_path).scan(""))
    (tmp_path / "a.zip").write_bytes(zipped({"other.md": b"other"}))
    with pytest.raises(FileNotFoundError):
        local(tmp_path).fetch(items[0])


def test_archive_that_was_repaired_since_the_scan_waits_for_the_next_one(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK no")
    source = local(tmp_path)
    item, _ = source.scan("")
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    with pytest.raises(TransientError, match="the next refresh lists its members"):
        source.fetch(item)
