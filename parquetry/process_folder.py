"""A folder for the temporary files of this process; what a killed process left behind is removed by the next one.

Files that have no name disappear with their process. Sockets, databases and files that several processes open have
names, and would stay in the system's temporary folder for as long as that is not emptied.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO

PREFIX = "parquetry-process-"
LOCK = "lock"
"""file in the folder that its process keeps locked for as long as it lives"""


@dataclass(frozen=True, slots=True)
class _Made:
    """A folder of this process."""

    path: Path
    held: IO[bytes]
    """its locked file"""


_made: dict[tuple[int, str], _Made] = {}
"""process and temporary folder -> the folder there; a forked process makes its own"""
_guard = Lock()


def process_folder(within: str | None = None) -> Path:
    """Return a private folder that is removed when this process ends; the first call in a process makes it.

    Args:
        within: folder to make it in; None for the system's temporary folder.

    Raises:
        OSError: the folder cannot be made.
    """
    place = within or tempfile.gettempdir()
    with _guard:
        made = _made.get((os.getpid(), place))
        if made is not None and not made.path.is_dir():
            # Systems remove what is old there.
            made.held.close()
            made = None
        if made is None:
            _sweep(Path(place))
            made = _made[os.getpid(), place] = _make(place)
    return made.path


def remove_process_folder() -> None:
    """Remove what `process_folder` made in this process; for those that end without Python's own tidying up."""
    for key, made in list(_made.items()):
        if key[0] == os.getpid():
            del _made[key]
            made.held.close()
            shutil.rmtree(made.path, ignore_errors=True)


atexit.register(remove_process_folder)


def _make(place: str) -> _Made:
    from filelock import lock_descriptor

    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    with ExitStack() as failed:
        failed.callback(shutil.rmtree, folder, ignore_errors=True)
        held = failed.enter_context((folder / "locking").open("wb"))
        lock_descriptor(held.fileno())
        # Others take a folder for abandoned if it has a lock that nobody holds.
        (folder / "locking").rename(folder / LOCK)
        failed.pop_all()
    return _Made(folder, held)


def _sweep(place: Path) -> None:
    """Remove the folders of processes that are gone."""
    with suppress(OSError):
        for folder in place.glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    from filelock import lock_descriptor

    if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
        return
    with (folder / LOCK).open("rb+") as lock:
        if not lock_descriptor(lock.fileno(), blocking=False):
            return
    shutil.rmtree(folder, ignore_errors=True)
