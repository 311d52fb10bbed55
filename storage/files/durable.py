"""Sync local files to disk in order: content before the name, the name before a caller relies on it.

A file that was written survives the end of the program, but not necessarily a crash of the machine: until it is synced,
content may be missing under a name that exists, and the name may be missing altogether.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o700
"""mode of a folder that only its owner can enter"""


def sync(path: str | Path) -> None:
    """Sync the content of a file, or the names in a folder, to disk.

    Raises:
        OSError: the disk does not confirm the sync.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: str | Path, mode: int = 0o777) -> None:
    """Create a folder and its missing parents; they are on disk once this returns.

    Args:
        path: path of the folder.
        mode: mode of the folders that are created: PRIVATE, or the usual one less the process's mask.
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
    """Move a file over another one, or to a new name; the new name is on disk once this returns."""
    sync(written)
    written.replace(final)
    sync(final.parent)
