"""The files of a table's log that nothing is read from any more.

A table is opened from its newest checkpoint and the commits after it. What lies below the checkpoint before that one
goes, so that the loss of the newest checkpoint can be repaired, with two exceptions: of `documents`, the log stays from
the checkpoint on from which the lowest kept version is read; and a commit stays as long as a file that it added is
there, because it records the checksum of that file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from posixpath import join
from urllib.parse import unquote

from parquetry.errors import StorageError
from parquetry.storage.files.filesystem import FileInfo, filesystem_at
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.log_check import log_faults
from parquetry.storage.lake.staging import CHECKPOINT, COMMIT, number_of

_BASES = re.compile(r"\d{20}\.checkpoint\.(?:parquet|sha256)")
"""names of checkpoints, and of the files with their checksums"""
_READERS = 16
"""commits that are read at once from an object store"""


def unneeded_log_files(layout: Layout, table: Table, lowest: int | None, there: Collection[str]) -> list[FileInfo]:
    """Return the files of a table's log that nothing is read from, in the order in which they may be deleted.

    Of a log with damage, none: its repair may need them.

    Args:
        layout: layout of the corpus.
        table: the table.
        lowest: its lowest version that can be read; None if only the newest is read.
        there: names of the shards in the folder of the table.

    Raises:
        StorageError: the log cannot be read.
    """
    entries = filesystem_at(layout.root).entries(layout.log(table))
    base = _base([entry.name for entry in entries if CHECKPOINT.fullmatch(entry.name)], lowest)
    checkpoints = [entry for entry in entries if _BASES.fullmatch(entry.name) and number_of(entry.name) < base]
    commits = [entry for entry in entries if COMMIT.fullmatch(entry.name) and number_of(entry.name) < base]
    if not commits or (layout.is_local and log_faults(layout, table)):
        return []
    with ThreadPoolExecutor(1 if layout.is_local else _READERS) as readers:
        added = readers.map(partial(added_by, layout, table), [entry.name for entry in commits])
        gone = [(entry, names) for entry, names in zip(commits, added, strict=True) if not names & set(there)]
    # A checkpoint and the commit that made the table are not worth a run.
    if not any(names for _, names in gone):
        return []
    # A checkpoint without all commits after it would be of no use, so it goes first.
    return [*checkpoints, *(entry for entry, _ in gone)]


def added_by(layout: Layout, table: Table, name: str) -> frozenset[str]:
    """Return the names of the shards that a commit added.

    Args:
        layout: layout of the corpus.
        table: the table.
        name: file name of the commit.

    Raises:
        StorageError: the commit cannot be read.
    """
    path = join(layout.log(table), name)
    try:
        with filesystem_at(path).open(path) as stream:
            actions = [json.loads(line) for line in stream.read().splitlines()]
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} cannot be read, so that the files of kept versions are not known") from error
    return frozenset(unquote(action["add"]["path"]) for action in actions if "add" in action)


def _base(checkpoints: Sequence[str], lowest: int | None) -> int:
    """Return the version below which the log is not needed; 0 if all of it is."""
    numbers = sorted(map(number_of, checkpoints))
    reached = [number for number in numbers if lowest is None or number <= lowest]
    return min(numbers[-2], reached[-1]) if len(numbers) > 1 and reached else 0
