"""Small tables whose rows are numbered changes: `retention` and `migrations`.

Each change names the change before it in a Delta transaction, so that of two changes decided at the same time the
second is decided again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from parquetry.errors import DamagedCorpus, PublishConflict, StorageError
from parquetry.storage.files.filesystem import filesystem_at, one_line_error
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake import schema
from parquetry.storage.lake.commits import commit, files_of, is_conflict, open_table
from parquetry.storage.lake.damage import faults_in
from parquetry.storage.lake.shards import write_shard
from parquetry.storage.lake.tables import is_table, make_table


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a table holds."""

    rows: tuple[Mapping[str, Any], ...] = ()
    """by sequence"""
    version: int | None = None
    """version of the table; None if there is none"""

    @property
    def last(self) -> int:
        """Sequence of the last change; 0 without any."""
        return max((row["sequence"] for row in self.rows), default=0)


def read_changes(layout: Layout, table: Table, unknown: str) -> Changes:
    """Return the changes of a table, none if it does not exist.

    Args:
        layout: layout of the corpus.
        table: the table.
        unknown: consequence of damage, for messages.

    Raises:
        DamagedCorpus: the table is damaged.
        StorageError: the table cannot be read.
    """
    if not is_table(layout, table):
        return Changes()
    try:
        opened = open_table(layout, table)
        files = files_of(opened)
        for file, wrong in faults_in(layout, table, files):
            raise DamagedCorpus(f"the corpus is damaged: {file} {wrong}; {unknown}")
        rows = [row for file in files for row in _rows(file)]
    except (DeltaError, OSError) as error:
        raise StorageError(f"{layout.table(table)} cannot be read: {one_line_error(error)}") from error
    return Changes(tuple(sorted(rows, key=lambda row: row["sequence"])), opened.version())


def append_change(layout: Layout, table: Table, known: Changes, values: Mapping[str, Any], conflict: str) -> None:
    """Append a change that was decided on the known ones.

    Args:
        layout: layout of the corpus, open for writing.
        table: the table, made if it does not exist.
        known: the changes so far.
        values: columns of the change, without its sequence.
        conflict: what another program did, if it was first.

    Raises:
        PublishConflict: another program has appended a change since.
        StorageError: it cannot be written.
    """
    sequence = known.last + 1
    what = f"{layout.table(table)} cannot be written"
    try:
        make_table(layout, table)
        rows = pa.Table.from_pylist([{"sequence": sequence, **values}], schema=schema.SCHEMAS[table])
        shard = write_shard(layout, table, f"{sequence:08d}-{time.time_ns():x}.parquet", rows)
        commit(layout, table, [shard], {}, transactions=[Transaction(table, sequence)], version=known.version or 0)
    except CommitFailedError as error:
        filesystem_at(layout.root).delete(layout.shard(table, shard.name))
        if not is_conflict(error):
            raise StorageError(f"{what}: {one_line_error(error)}") from error
        raise PublishConflict(conflict) from error
    except (DeltaError, OSError) as error:
        raise StorageError(f"{what}: {one_line_error(error)}") from error


def _rows(file: str) -> list[dict[str, Any]]:
    with filesystem_at(file).open(file) as stream:
        rows: list[dict[str, Any]] = pq.read_table(stream).to_pylist()
    return rows
