"""Temporary files with names go with their process, and those of killed processes with the next one."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.process_folder import LOCK, process_folder, remove_process_folder

PROGRAM = """
import sys
from parquetry.process_folder import process_folder
folder = process_folder(sys.argv[1])
assert process_folder(sys.argv[1]) == folder
(folder / "left").write_text("private")
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A temporary folder; what this process made elsewhere stays, as it needs it."""
    monkeypatch.setattr("parquetry.process_folder._made", {})
    yield tmp_path
    remove_process_folder()


@pytest.fixture
def other(place):
    """Another process with a folder there, which ends when its input ends."""
    command = [sys.executable, "-c", PROGRAM, str(place)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.folder = Path(process.stdout.readline().strip())
        yield process


def test_folder_is_private_and_goes_with_its_process(place, other):
    assert list(place.iterdir()) == [other.folder]
    assert stat.S_IMODE(other.folder.stat().st_mode) == 0o700
    other.communicate()
    assert (other.returncode, list(place.iterdir())) == (0, [])


def test_folder_of_a_killed_process_goes_with_the_next_one_and_no_other_does(place, other):
    for name in ("parquetry-process-of-somebody", "pymp-other"):
        (place / name).mkdir()
    (place / "parquetry-process-file").touch()
    (place / "parquetry-process-link").symlink_to(place / "pymp-other")
    known = {each.name for each in place.iterdir()}
    mine = process_folder(str(place))
    assert {each.name for each in place.iterdir()} == {*known, mine.name}, "the other process lives"
    remove_process_folder()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (other.folder / "left").exists()
    mine = process_folder(str(place))
    assert {each.name for each in place.iterdir()} == (known | {mine.name}) - {other.folder.name}
    assert [each.name for each in mine.iterdir()] == [LOCK]


def test_folder_that_was_emptied_away_is_made_again(place):
    first = process_folder(str(place))
    (first / LOCK).unlink()
    first.rmdir()
    second = process_folder(str(place))
    assert (second != first, second.is_dir()) == (True, True)
