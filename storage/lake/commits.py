"""Commits to a Delta table: add shards, or replace others by them, exactly once.

A commit to a local table is on disk before it takes effect. An object store keeps what it has acknowledged, but it may
have made a commit that it reports as failed, or have made it and rejected the repetition: the table is read again
before a failure is accepted.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from parquetry.errors import StorageError
from parquetry.storage.files.filesystem import filesystem_at, one_line_error
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.log_check import check_log
from parquetry.storage.lake.staging import commit_durably, make_checkpoint

if TYPE_CHECKING:
    from parquetry.storage.lake.shards import Shard

SHARDS = "shards"
"""key of a commit's metadata: the SHA-256 of each added shard, by name, as JSON"""
_log = logging.getLogger("parquetry")
_TRIES = 3
"""attempts at a commit that its store reports as failed and that did not land"""
_PAUSE = 0.3
"""seconds before the first retry; doubled before each further one"""


def open_table(layout: Layout, table: Table, version: int | None = None) -> DeltaTable:
    """Open a table as of a version; None for the newest.

    Raises:
        DamagedCorpus: the log of the table is damaged.
        DeltaError, OSError: the table cannot be opened.
    """
    if layout.is_local:
        check_log(layout, table, version)
    return DeltaTable(layout.table(table), version=version, storage_options=filesystem_at(layout.root).table_options())


def commit(
    layout: Layout,
    table: Table,
    shards: Sequence[Shard],
    metadata: Mapping[str, str],
    *,
    gone: Sequence[str] = (),
    transactions: Sequence[Transaction] = (),
    version: int | None = None,
) -> int:
    """Change the set of files of a table.

    Retrying is safe: a commit of the same shards is the same commit, and the transactions of a publish keep a second
    one from passing.

    Args:
        layout: layout of the corpus.
        table: to commit to.
        shards: shards to add, already written.
        metadata: metadata of the commit.
        gone: names of files to remove; the files are no longer named but stay in place.
        transactions: application transactions that no other commit since `version` may have used.
        version: the version on which the commit was decided; None for the newest.

    Returns:
        A version that contains the commit.

    Raises:
        CommitFailedError: the commit conflicts with another one.
        DeltaError, OSError: the commit has failed.
        StorageError: it is unknown whether the commit has failed.
    """
    from parquetry.storage.lake import schema

    properties = CommitProperties(
        custom_metadata={**metadata, SHARDS: json.dumps({shard.name: shard.sha256 for shard in shards})},
        app_transactions=list(transactions),
    )

    def write(opened: DeltaTable) -> None:
        moment = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [_added(shard, moment) for shard in shards]
        actions += [RemoveAction(name, True, moment) for name in gone]
        opened.create_write_transaction(
            actions,
            "append",
            schema.SCHEMAS[table],
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(
                # Commits that delta-rs deletes by their age may be needed for a tagged version.
                create_checkpoint=not layout.is_local,
                cleanup_expired_logs=False,
            ),
        )

    if layout.is_local:
        return commit_durably(layout, table, lambda copy: write(DeltaTable(copy, version=version)), version)
    return _commit_to_store(
        layout, table, write, version, lambda failure: _landed(layout, table, shards, gone, failure)
    )


def _commit_to_store(
    layout: Layout,
    table: Table,
    write: Callable[[DeltaTable], None],
    version: int | None,
    landed: Callable[[Exception], int | None],
) -> int:
    """Commit to an object store, which may have made a commit that it reports as failed.

    Args:
        layout: layout of the corpus.
        table: to commit to.
        write: writes the commit.
        version: the version on which the commit was decided; None for the newest.
        landed: returns a version that contains the commit after a failure; None if it did not land.
    """
    tried = 0
    while True:
        tried += 1
        try:
            opened = open_table(layout, table, version)
            write(opened)
        except (DeltaError, OSError) as error:
            found = landed(error)
            if found is not None:
                return found
            # An addition that was decided on no version is right on any.
            if tried == _TRIES or (is_conflict(error) and version is not None):
                raise
            time.sleep(_PAUSE * 2 ** (tried - 1))
        else:
            return _newest(layout, table, opened.version() + 1)


def _newest(layout: Layout, table: Table, least: int) -> int:
    """Return the newest version of a table, at least the given one; a commit that has landed no longer fails."""
    for tried in range(_TRIES):
        try:
            return open_table(layout, table).version()
        except (DeltaError, OSError):
            time.sleep(_PAUSE * 2**tried)
    return least


def _landed(
    layout: Layout, table: Table, shards: Sequence[Shard], gone: Sequence[str], failure: Exception
) -> int | None:
    """Return a version that contains a commit that was reported as failed; None if it did not land.

    Raises:
        StorageError: this cannot be determined.
    """
    try:
        found = open_table(layout, table)
        files = set(files_of(found))
    except (DeltaError, OSError) as error:
        raise StorageError(
            f"{one_line_error(failure)}; whether it was written all the same is not known, because the table cannot "
            f"be read either ({one_line_error(error)}). `parquetry history` tells later; running again is safe"
        ) from failure
    joined = {layout.shard(table, shard.name) for shard in shards} <= files
    return found.version() if joined and not files & {layout.shard(table, name) for name in gone} else None


def files_of(table: DeltaTable) -> tuple[str, ...]:
    """Return the absolute paths or URLs of the Parquet files of a table, in order."""
    return tuple(sorted(unquote(uri.removeprefix("file://")) for uri in table.file_uris()))


def is_conflict(error: Exception) -> bool:
    """True if another run has committed under the same application transaction."""
    return isinstance(error, CommitFailedError) and "transaction" in str(error).lower()


def _added(shard: Shard, moment: int) -> AddAction:
    return AddAction(shard.name, shard.size, {}, moment, True, json.dumps({"numRecords": shard.rows}))


def checkpoint(layout: Layout, table: Table) -> None:
    """Write the state of a table into one file, from which it is opened faster.

    A failure is logged: the table is unchanged, and only opens more slowly.
    """
    try:
        if layout.is_local:
            make_checkpoint(layout, table)
        else:
            open_table(layout, table).create_checkpoint()
    except (DeltaError, OSError) as error:
        _log.warning("no checkpoint of %s: %s", layout.table(table), one_line_error(error))
