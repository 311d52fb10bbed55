"""The newest version of a table, read from its log once for each state of the log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.commits import files_of, open_table
from parquetry.storage.lake.staging import commit_name, copy_name
from parquetry.storage.publishes import note

if TYPE_CHECKING:
    from parquetry.storage.lake.shards import Shard


@dataclass(frozen=True, slots=True)
class TableState:
    """Number, description and files of a version of a table."""

    version: int
    """number of the version"""
    description: str | None
    """text that the table was created with"""
    files: tuple[str, ...]
    """absolute paths or URLs of its Parquet files, in order"""


_MOST_KEPT = 64
"""tables"""
Listing = frozenset[tuple[str, int, int, int]]
"""name, size, time of change in nanoseconds and inode of each file of a log that its newest version is read from"""
_kept: dict[str, tuple[Listing, TableState]] = {}
"""log -> its files when it was read last, and what was read"""


def state_of(layout: Layout, table: Table) -> TableState:
    """Return the newest version of a table.

    The log of a local table is checked and read again if a file of it came, went or changed since: a run looks at each
    table several times, and Delta Lake takes milliseconds for each look.

    Raises:
        DamagedCorpus: the log of the table is damaged.
        DeltaError, OSError: the table cannot be opened.
    """
    listed = _listed(layout.log(table)) if layout.is_local else frozenset()
    if not listed:
        return _read(layout, table)
    known, state = _kept.get(layout.log(table), (None, None))
    if state is not None and known == listed:
        return state
    state = _read(layout, table)
    # What a commit in between added may be in the state or not.
    if _listed(layout.log(table)) == listed:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[layout.log(table)] = listed, state
    return state


def follow(layout: Layout, table: Table, version: int, shards: Sequence[Shard]) -> None:
    """Take note of a commit that this program has just made: the log is not read again for it.

    Nothing is noted unless the log was read at the version before, and its other files are as they were then.

    Args:
        layout: layout of the corpus.
        table: table of the commit.
        version: version of the commit.
        shards: shards that it added.
    """
    if table == "documents":
        note(version)
    log = layout.log(table)
    if not layout.is_local or log not in _kept:
        return
    before, state = _kept[log]
    now = _listed(log)
    commit = commit_name(version)
    came, went = ({name for name, *_ in files} for files in (now - before, before - now))
    is_next = version == state.version + 1 and {commit} <= came <= {commit, copy_name(commit)}
    if is_next and went <= {copy_name(commit_name(state.version))}:
        files = sorted({*state.files, *(layout.shard(table, shard.name) for shard in shards)})
        _kept[log] = now, replace(state, version=version, files=tuple(files))


def _read(layout: Layout, table: Table) -> TableState:
    opened = open_table(layout, table)
    return TableState(opened.version(), opened.metadata().description, files_of(opened))


def _listed(log: str) -> Listing:
    """Return the files of a log from its newest checkpoint on; nothing if there is none, or if it changes just now."""
    try:
        with os.scandir(log) as entries:
            files = list(entries)
        # Numbers are as long as each other, and most files are older.
        newest = max((file.name for file in files if file.name.endswith(".checkpoint.parquet")), default="")
        oldest = newest.partition(".")[0]
        found = [(file.name, file.stat()) for file in files if file.name >= oldest]
    except FileNotFoundError:
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found)
