"""Files of a table give way to others, in one commit: the one thing in a corpus that is not only added to."""

from __future__ import annotations

import time
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from knowledge.errors import PublishConflict, StorageError
from storage import schema
from storage.commits import add_action
from storage.layout import Layout, Table
from storage.places import files_at, told
from storage.shards import Shard


def replace_files(layout: Layout, table: Table, gone: Sequence[str], shards: Sequence[Shard], run_id: str) -> None:
    """Commit that shards stand for files from now on; the files are only not named any more.

    What others decided on before and commit afterwards is a conflict for them: Delta Lake takes it for a decision on
    rows that are not there any more.

    Args:
        layout: of the corpus.
        table: whose files they are.
        gone: names of files.
        shards: written already.
        run_id: of the run.

    Raises:
        PublishConflict: somebody else was first; nothing was changed.
        StorageError: the commit failed; running again is safe.
    """
    options = files_at(layout.root).table_options()
    moment = int(time.time() * 1000)
    actions: list[AddAction | RemoveAction] = [add_action(shard) for shard in shards]
    actions.extend(RemoveAction(name, True, moment) for name in gone)
    try:
        opened = DeltaTable(layout.table(table), storage_options=options)
        if not set(gone) <= _names(opened):
            raise PublishConflict(f"another run rewrote files of {table} meanwhile")
        properties = CommitProperties(custom_metadata={"run_id": run_id})
        opened.create_write_transaction(actions, "append", schema.SCHEMAS[table], commit_properties=properties)
    except (DeltaError, OSError) as error:
        if _landed(layout, table, gone, shards):
            return
        if isinstance(error, CommitFailedError):
            raise PublishConflict(f"another run changed {table} meanwhile: {error}") from error
        raise StorageError(f"{layout.table(table)} cannot be rewritten: {told(error)}") from error


def _names(table: DeltaTable) -> set[str]:
    return {uri.rpartition("/")[2] for uri in table.file_uris()}


def _landed(layout: Layout, table: Table, gone: Sequence[str], shards: Sequence[Shard]) -> bool:
    """Whether a store did what it reported as failed."""
    try:
        names = _names(DeltaTable(layout.table(table), storage_options=files_at(layout.root).table_options()))
    except (DeltaError, OSError):
        return False
    return not names & set(gone) and {shard.name for shard in shards} <= names
