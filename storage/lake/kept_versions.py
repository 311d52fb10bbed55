"""The versions that a corpus keeps by its settings, and the files of `documents` that they are read from."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from posixpath import basename

from parquetry.errors import SettingsError
from parquetry.planning.compaction import horizon_of
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.retention import Retained, read_retention
from parquetry.storage.lake.staging import commit_name
from parquetry.storage.lake.trimming import added_by


def horizon_snapshot(lake: Lake, settings: RetentionSettings, now: datetime) -> Snapshot:
    """Return the lowest version from which on all are kept by the settings, and that can be read.

    Versions that held what a user had erased cannot be read; they are passed over.

    Args:
        lake: the corpus.
        settings: the time and the number for which versions are kept.
        now: present time, UTC.

    Raises:
        StorageError: the corpus cannot be read.
    """
    publishes = [(each.version, each.at) for each in lake.history()]
    wanted = max(horizon_of(publishes, settings, now), read_retention(lake.layout).horizon)
    return _readable_from(lake, wanted, publishes[0][0])


def _readable_from(lake: Lake, version: int, newest: int) -> Snapshot:
    """Return the first version from the given one on that can be read."""
    for each in range(version, newest):
        with suppress(SettingsError):
            return lake.snapshot(each, needed=["documents"])
    return lake.snapshot()


def tagged_snapshots(lake: Lake, kept: Retained, horizon: int) -> list[Snapshot]:
    """Return the tagged versions below a horizon that can be read, lowest first."""
    found = []
    for version in sorted({tag.version for tag in kept.tags if tag.version < horizon}):
        with suppress(SettingsError):
            found.append(lake.snapshot(version, needed=["documents"]))
    return found


def kept_documents(lake: Lake, kept: Retained) -> frozenset[str]:
    """Return the names of the files of `documents` from which any kept version is read.

    Args:
        lake: the corpus.
        kept: its kept versions.

    Raises:
        StorageError: this cannot be determined; nothing may be deleted then.
    """
    newest = lake.snapshot()
    files = list(newest.files["documents"])
    for snapshot in tagged_snapshots(lake, kept, kept.horizon):
        files += snapshot.files["documents"]
    oldest = _readable_from(lake, kept.horizon, newest.version)
    files += oldest.files["documents"]
    commits = map(commit_name, range(oldest.version + 1, newest.version + 1))
    since = (name for commit in commits for name in added_by(lake.layout, "documents", commit))
    return frozenset((*map(basename, files), *since))
