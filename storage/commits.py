"""Commits to a Delta table: open it, and add shards to it in one commit, once."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from knowledge.errors import StorageError
from storage import schema
from storage.layout import Layout, Table
from storage.places import files_at, told
from storage.shards import Shard

_TRIES = 3
"""of a commit that its store reports as failed and that did not land"""
_PAUSE = 0.3
"""seconds before the first further try; twice as long before each other"""


def open_table(layout: Layout, table: Table, version: int | None = None) -> DeltaTable:
    """Open a table as of a version; None for the newest.

    Raises:
        DeltaError, OSError: it cannot be opened.
    """
    return DeltaTable(layout.table(table), version=version, storage_options=files_at(layout.root).table_options())


def commit(
    layout: Layout, table: Table, shards: Sequence[Shard], properties: CommitProperties, version: int | None = None
) -> int:
    """Append shards to a table in one commit, once.

    A store may have done what it reports as failed, or done it twice and refuse the second time. So the table is
    read again before a failure is believed. Trying again is harmless: a commit of the same shards is the same
    commit, and the transactions of a publish let no second one pass.

    Args:
        layout: of the corpus.
        table: to append to.
        shards: written already.
        properties: of the commit.
        version: that the commit was decided on; None for the newest.

    Returns:
        The newest version, once it holds the commit; the lowest that it can be, if the store does not tell.
    """
    tried = 0
    while True:
        tried += 1
        try:
            opened = open_table(layout, table, version)
            opened.create_write_transaction(
                [add_action(shard) for shard in shards],
                "append",
                schema.SCHEMAS[table],
                commit_properties=properties,
            )
        except (DeltaError, OSError) as error:
            landed = _landed(layout, table, shards, error)
            if landed is not None:
                return landed
            if layout.is_local or tried == _TRIES or is_conflict(error):
                raise
            time.sleep(_PAUSE * 2 ** (tried - 1))
        else:
            return _newest(layout, table, opened.version() + 1)


def _newest(layout: Layout, table: Table, least: int) -> int:
    """The newest version of a table that is at least at one; what has landed does not fail any more."""
    for tried in range(_TRIES):
        try:
            return open_table(layout, table).version()
        except (DeltaError, OSError):
            time.sleep(_PAUSE * 2**tried)
    return least


def _landed(layout: Layout, table: Table, shards: Sequence[Shard], failure: Exception) -> int | None:
    """A version that holds a commit which was reported as failed; None if it has not landed.

    Raises:
        StorageError: that cannot be found out.
    """
    try:
        found = open_table(layout, table)
        files = files_of(found)
    except (DeltaError, OSError) as error:
        raise StorageError(
            f"{told(failure)}; whether it was written all the same is not known, because the table cannot "
            f"be read either ({told(error)}). `parquetry history` tells later; running again is safe"
        ) from failure
    wanted = {layout.shard(table, shard.name) for shard in shards}
    return found.version() if wanted <= set(files) else None


def files_of(table: DeltaTable) -> tuple[str, ...]:
    """Absolute paths or addresses of the Parquet files of a table, in order."""
    return tuple(sorted(unquote(uri.removeprefix("file://")) for uri in table.file_uris()))


def is_conflict(error: Exception) -> bool:
    """Whether somebody else committed under the same application transaction."""
    return isinstance(error, CommitFailedError) and "transaction" in str(error).lower()


def add_action(shard: Shard) -> AddAction:
    """What makes a shard a part of its table."""
    statistics = json.dumps({"numRecords": shard.rows})
    return AddAction(shard.name, shard.size, {}, int(time.time() * 1000), True, statistics)
