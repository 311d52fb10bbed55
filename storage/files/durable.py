"""Puts files of this machine on disk, in order: content before the name, the name before anybody is told of it.

A program that has been told that a file is written knows that it survives the end of the program, not that of the
machine: until it is synced, content may be missing under a name that is there, and a name may be missing altogether.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o700
"""mode of a folder that is its owner's alone: nobody else reaches what is in it"""


def sync(path: str | Path) -> None:
    """Put the content of a file, or the names in a folder, on disk.

    Raises:
        OSError: the disk does not confirm it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: str | Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it, that are on disk once this returns.

    Args:
        path: of the folder.
        mode: of those that are made: PRIVATE, or what the process's mask leaves of the usual one.
    """
    folder = Path(path)
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode, exist_ok=True)
        sync(each.parent)


def replace(written: Path, final: Path) -> None:
    """Put a file in the place of another one, or of none; it has its new name on disk once this returns."""
    sync(written)
    written.replace(final)
    sync(final.parent)
