"""The newest version of a table, read from its log once for each state of the log."""

from __future__ import annotations

import os
from dataclasses import dataclass

from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.commits import files_of, open_table


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
"""name, size, time of change in nanoseconds and inode of each file of a log"""
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


def _read(layout: Layout, table: Table) -> TableState:
    opened = open_table(layout, table)
    return TableState(opened.version(), opened.metadata().description, files_of(opened))


def _listed(log: str) -> Listing:
    """Return the files of a log; nothing if there is none, or if it changes just now."""
    try:
        with os.scandir(log) as entries:
            found = [(entry.name, entry.stat()) for entry in entries]
    except FileNotFoundError:
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found)
