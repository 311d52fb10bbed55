"""Files written by users: reading ends for any content and any kind of file."""

import os

import pytest

from parquetry.settings.small_file import read_small


def test_a_file_ends_at_its_limit(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"x" * 10)
    assert read_small(file, 10) == b"x" * 10
    with pytest.raises(OSError, match="has more than 9 bytes"):
        read_small(file, 9)
    with pytest.raises(OSError, match="has more than 100 bytes"):
        read_small("/dev/zero", 100)


def test_what_is_no_file_is_told_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert read_small(tmp_path / "pipe", 100) == b""
    with pytest.raises(OSError, match="is not a file"):
        read_small(tmp_path / "pipe", 100, anything=False)
    with pytest.raises(OSError, match="symbolic links"):
        read_small(tmp_path / "link", 100, anything=False)
    with pytest.raises(OSError, match="is a folder"):
        read_small(tmp_path, 100)
