"""After a power cut on ext4, the last version reported as published is there, or the one after it.

The file system is in a file, mounted on a loop device. A copy of that file is the state of the device: everything
that the kernel still kept in memory is lost, as after a power cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine
from tests.storage.lake.test_power_loss import held
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

OAK, ELM, ASH = "The oak is dried.", "The elm is sawn.", "Ash bends."
EVERY = 4
"""number of syncs between two copies"""


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    """Mount a file system in a file; yield it as a folder.

    Raises:
        OSError: the file system cannot be mounted here.
    """
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"no loop device can be mounted here: {done.stderr.strip() or done.returncode}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def disk(tmp_path):
    """Yield the file of an ext4 file system, and its mount point."""
    image = tmp_path / "disk.img"
    with image.open("wb") as stream:
        stream.truncate(48 << 20)
    if os.geteuid() or shutil.which("mkfs.ext4") is None:
        pytest.skip("an ext4 file system is made and mounted by root, with mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    try:
        mount = mounted(image, tmp_path / "mounted")
        place = mount.__enter__()
    except OSError as error:
        pytest.skip(str(error))
    yield image, place
    mount.__exit__(None, None, None)


def test_what_was_told_of_survives_power_cuts(disk, tmp_path, monkeypatch):
    image, place = disk
    workshop = Workshop(tmp_path / "all")
    workshop.sections["corpus"] = {"root": str(place / "corpus")}
    copies: list[tuple[Path, int]] = []
    truths: list[dict[str, str]] = [{}]
    syncs, fsync = 0, os.fsync

    def cut() -> None:
        copy = tmp_path / f"copy-{len(copies)}.img"
        subprocess.run(["cp", "--sparse=always", image, copy], check=True)
        copies.append((copy, len(truths) - 1))

    def observed(descriptor: int) -> None:
        nonlocal syncs
        fsync(descriptor)
        syncs += 1
        if syncs % EVERY == 0:
            cut()

    monkeypatch.setattr(os, "fsync", observed)
    for change in ({"oak.md": OAK, "elm.md": ELM}, {"ash.md": ASH}, {"oak.md": None}):
        for path, text in change.items():
            if text is None:
                (workshop.folder / path).unlink()
            else:
                workshop.write(path, text)
        workshop.refresh(allow_removals=True)
        truths.append({file.name: file.read_text() for file in workshop.folder.iterdir()})
        cut()
    monkeypatch.undo()
    assert len(copies) > 12
    for copy, told in copies:
        with mounted(copy, tmp_path / f"after-{copy.stem}") as left:
            corpus = left / "corpus"
            found = held(corpus)
            assert found in truths[told : told + 2], (copy.name, told)
            if found:
                assert examine(Lake(str(corpus)), quick=True).healthy
        copy.unlink()
