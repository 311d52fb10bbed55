"""Disks of real sizes that fill up while a run writes: little space, and few files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from parquetry.flows.pipelines import documents as composition
from parquetry.serving.cli.main import run
from parquetry.storage.index.folder import IndexFolder
from tests.flows.pipelines.test_full_disk import AFTER, BEFORE, copied, healthy, held, leftovers, searched, unchanged

pytestmark = pytest.mark.slow
KB = 1024
BYTES = [
    *(0, 4 * KB, 8 * KB, 12 * KB, 16 * KB, 24 * KB, 32 * KB, 48 * KB, 64 * KB, 96 * KB, 128 * KB, 192 * KB),
    *(260 * KB, 512 * KB, 1024 * KB, 2048 * KB, 3072 * KB, 4096 * KB, 5120 * KB, 6144 * KB),
]
"""bytes left"""
FILES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 32]
"""number of files that can still be created"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return unchanged(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def disk(tmp_path):
    """A disk of 32 MB and 400 files."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m,nr_inodes=400", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here: it takes root, and a kernel that lets it")
    yield place
    # Detached at once, and removed when the last reader has closed its files.
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave_bytes(disk: Path, left: int) -> None:
    """Fill a disk from outside the run until the given number of bytes is left."""
    state = os.statvfs(disk)
    with (disk / "other").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, max(1, state.f_bavail * state.f_frsize - left))


def leave_files(disk: Path, left: int) -> None:
    """Create files from outside the run until the disk has room for the given number of files."""
    (disk / "others").mkdir()
    for number in range(os.statvfs(disk).f_favail - left):
        (disk / "others" / str(number)).touch()


def clear(disk: Path) -> None:
    (disk / "other").unlink(missing_ok=True)
    shutil.rmtree(disk / "others", ignore_errors=True)


def cases():
    for fill, amounts in ((leave_bytes, BYTES), (leave_files, FILES)):
        for late in (False, True):
            yield from (
                pytest.param(fill, left, late, id=f"{fill.__name__}-{left}-{'late' if late else 'early'}")
                for left in amounts[2 * late :]
            )


@pytest.mark.series(8)
@pytest.mark.parametrize(("fill", "left", "late"), list(cases()))
def test_run_on_a_disk_that_fills_up_is_whole_and_says_so(prepared, disk, monkeypatch, capsys, fill, left, late):
    workshop = copied(prepared, disk / "place")
    corpus = workshop.root / "corpus"
    settings = disk / "parquetry.toml"
    settings.write_text(
        f'[corpus]\nroot = "{corpus}"\n[extraction]\nworkers = 1\n'
        f'[[source]]\nname = "docs"\nuri = "{workshop.folder}"\n'
    )
    command = ["refresh", "--direct", "--allow-removals", "--strict", "--config", str(settings)]
    if late:
        # As if another program filled the disk while documents are read.
        real = composition.check_space

        def check(spaces):
            real(spaces)
            fill(disk, left)

        monkeypatch.setattr(composition, "check_space", check)
    else:
        fill(disk, left)
    code = run(command)
    told = capsys.readouterr()

    assert code in (0, 3, 4, 5)
    if code == 0:
        assert held(workshop) == searched(workshop) == AFTER
    elif code == 5:
        assert "but its search index is not written: no space left on device: " in told.out
        assert "free " in told.out
        assert held(workshop) == AFTER
        newest = IndexFolder(workshop.lake.layout, workshop.settings.search).newest()
        assert newest is not None
        assert newest.version == 1
        assert searched(workshop) in (BEFORE, AFTER)
    else:
        (line,) = told.err.splitlines()
        assert f"no space left on device: {disk}" in line or f"the disk of {disk}" in line
        assert (code == 3) == ("nothing was done" in line)
        assert held(workshop) == searched(workshop) == BEFORE
    assert healthy(workshop)
    assert leftovers(corpus) == []

    clear(disk)
    monkeypatch.undo()
    assert run(command) == 0
    assert held(workshop) == searched(workshop) == AFTER
    assert healthy(workshop)
