"""Give back space: delete the files of a corpus that no kept version is read from.

Deleted are files that a compaction or an erasure replaced at least a day ago, files that no commit names, once the run
that wrote them began before the retention, and then the commits and checkpoints that nothing is read from any more.
Files of `documents` that a kept version is read from stay; rows of the other tables that a kept version needs are in
their newest version.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from posixpath import basename

from parquetry.planning.compaction import cutoff_of
from parquetry.planning.rows import RunStamp
from parquetry.settings.retention import RetentionSettings
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import LOG, TABLES, Table, is_compacted, run_of
from parquetry.storage.lake.kept_versions import horizon_snapshot, kept_documents
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.replace_files import gave_way
from parquetry.storage.lake.retention import Retained, raise_horizon, read_retention
from parquetry.storage.lake.rewrite import run_row
from parquetry.storage.lake.trimming import unneeded_log_files

LONGEST_READ = timedelta(days=1)
"""time for which a replaced file stays, for readers and runs that listed it before, and an unnamed file of a
compaction, which may be going on"""


@dataclass(frozen=True, slots=True)
class Unneeded:
    """A file that no kept version is read from."""

    table: Table
    name: str
    """path of the file in the folder of the table"""
    size: int
    """bytes"""


@dataclass(frozen=True, slots=True)
class Vacuum:
    """The result of a vacuum."""

    run_id: str
    version: int
    """version of `documents`"""
    horizon: int
    """lowest version from which on all are kept"""
    files: tuple[Unneeded, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def unneeded_files(lake: Lake, retention: RetentionSettings, stamp: RunStamp) -> Vacuum:
    """Return the files that a vacuum would delete; change nothing.

    Args:
        lake: the corpus.
        retention: earlier versions that are kept.
        stamp: stamp of this run; its time is the present.

    Raises:
        StorageError: this cannot be determined.
    """
    horizon = horizon_snapshot(lake, retention, stamp.at).version
    known = read_retention(lake.layout)
    kept = Retained(known.tags, max(horizon, known.horizon), known.changes)
    return _found(lake, kept, retention, stamp)


def vacuum(lake: Lake, retention: RetentionSettings, stamp: RunStamp) -> Vacuum:
    """Delete the files that no kept version is read from; readers and runs go on.

    Args:
        lake: the corpus, open for writing.
        retention: earlier versions that are kept.
        stamp: stamp of this run; its time is the present.

    Raises:
        PublishConflict: other programs kept changing which versions are kept; nothing was deleted.
        StorageError: something could not be read or deleted; running again continues.
    """
    started = time.perf_counter()
    planned = unneeded_files(lake, retention, stamp)
    if not planned.files:
        return planned
    # Nothing is deleted that a version needs which was tagged meanwhile.
    kept = raise_horizon(lake.layout, planned.horizon, stamp.at)
    done = _found(lake, kept, retention, stamp)
    files = filesystem_at(lake.layout.root)
    for file in done.files:
        files.delete(lake.layout.shard(file.table, file.name))
    if done.files:
        lake.record(run_row("vacuum", done.version, done.version, [], stamp, time.perf_counter() - started), [])
    return done


def _found(lake: Lake, kept: Retained, retention: RetentionSettings, stamp: RunStamp) -> Vacuum:
    """Return the unneeded files of every table."""
    # A run registers its shards before the commit that names their rows: listed in the opposite order, none is missed.
    documents = kept_documents(lake, kept)
    present = {table: filesystem_at(lake.layout.root).entries(lake.layout.table(table)) for table in TABLES}
    snapshot = lake.snapshot()
    found: list[Unneeded] = []
    for table in TABLES:
        needed = {basename(file) for file in snapshot.files[table]} | (documents if table == "documents" else set())
        replaced = gave_way(lake.layout, table, stamp.at - LONGEST_READ)
        needed |= gave_way(lake.layout, table) - replaced
        gone: dict[str, int] = {}
        for entry in present[table]:
            if entry.is_folder or not entry.name.endswith(".parquet") or entry.name in needed:
                continue
            if entry.name in replaced or _is_left_behind(entry.name, retention, stamp):
                gone[entry.name] = entry.size
        # Shards are deleted before the commits that added them.
        left = {entry.name for entry in present[table]} - gone.keys()
        lowest = min([kept.horizon, *(tag.version for tag in kept.tags)]) if table == "documents" else None
        gone |= {f"{LOG}/{file.name}": file.size for file in unneeded_log_files(lake.layout, table, lowest, left)}
        found += [Unneeded(table, name, size) for name, size in gone.items()]
    return Vacuum(stamp.run_id, snapshot.version, kept.horizon, tuple(found))


def _is_left_behind(name: str, retention: RetentionSettings, stamp: RunStamp) -> bool:
    """True if the run that wrote a file which no commit names is long over.

    Chunks that a crashed run left hold vectors that were paid for, and that other runs find until then.
    """
    run = run_of(name)
    limit = stamp.at - LONGEST_READ if is_compacted(name) else cutoff_of(retention, stamp.at)
    return run is not None and run[1] < limit
