"""Folder with the state of a service, which all its processes on one machine share: tokens, jobs, audit events."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from parquetry.errors import SettingsError
from parquetry.ids import settings_hash
from parquetry.settings.home import expanded
from parquetry.settings.sections import Settings
from parquetry.storage.files.durable import PRIVATE, make_folder, sync
from parquetry.storage.files.filesystem import last_folder
from parquetry.storage.files.layout import layout_of

FOLDER = "service"
"""name of the folder in a local corpus"""
PRIVATE_FILE = 0o600
"""mode of a file that only its owner can read"""


def state_folder(settings: Settings) -> Path:
    """Return the folder with the state of a corpus's service, created if it is missing, accessible to its owner only.

    `[serve] state`; else `service` in a local corpus; else a folder of the user, one for each corpus.

    Raises:
        SettingsError: it cannot be created, or belongs to another user; or as `state_place`.
    """
    folder = state_place(settings)
    try:
        # The root of a corpus that does not exist yet is as accessible as any other folder.
        make_folder(folder.parent)
        make_folder(folder, PRIVATE)
        if folder.stat().st_mode & 0o077 and sys.platform != "win32":
            folder.chmod(PRIVATE)
    except OSError as error:
        raise SettingsError(
            f"the state of the service cannot be kept in {folder}: {error.strerror}; set `state` in [serve] to a "
            "folder of this user"
        ) from error
    return folder


def private_file(path: Path) -> Path:
    """Return a file, created empty if it is missing, accessible to its owner only.

    Raises:
        OSError: it cannot be created.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    except FileExistsError:
        return path
    sync(path.parent)
    return path


def state_place(settings: Settings) -> Path:
    """Return the path of the folder, which may not exist yet.

    Raises:
        SettingsError: a file is in the place of the corpus.
    """
    layout = layout_of(settings.corpus.root)
    if layout.is_local:
        _check_corpus(layout.root)
    if settings.serve.state is not None:
        return expanded(settings.serve.state).absolute()
    if layout.is_local:
        return Path(layout.root) / FOLDER
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = layout.root.rstrip("/").rpartition("/")[2]
    return base / "parquetry" / f"{name}-{settings_hash({'root': layout.root})}"


def _check_corpus(root: str) -> None:
    try:
        last_folder(root)
    except OSError as error:
        raise SettingsError(f"corpus {root} cannot be opened: {error.strerror}") from error
