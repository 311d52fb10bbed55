"""The Delta tables of a corpus: whether they are there, and how they are made."""

from __future__ import annotations

import json

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.files.places import files_at, last_folder
from parquetry.storage.lake import schema
from parquetry.storage.lake.staging import commit_durably


def is_table(layout: Layout, table: Table) -> bool:
    """Whether there is a Delta table; `DeltaTable.is_deltatable` would keep all other threads waiting for a store.

    Raises:
        SettingsError: a file is where the corpus would be.
    """
    if layout.is_local:
        last_folder(layout.root)
    entries = files_at(layout.root).entries(layout.log(table))
    return any(entry.name.endswith((".json", ".checkpoint.parquet")) for entry in entries)


def make_table(layout: Layout, table: Table) -> None:
    """Make a table that is not there.

    Raises:
        DeltaError, OSError: it cannot be made.
    """
    if is_table(layout, table):
        return

    try:
        if layout.is_local:
            commit_durably(layout, table, lambda place: create_table(place, table, None))
        else:
            create_table(layout.table(table), table, files_at(layout.root).table_options())
    except (DeltaError, OSError):
        # Made by somebody else meanwhile, or by us in a request whose answer was lost.
        if not is_table(layout, table):
            raise


def create_table(place: str, table: Table, options: dict[str, str] | None) -> None:
    """Have delta-rs write the first commit of a table.

    Args:
        place: folder or address of the table.
        table: which one it becomes.
        options: how the place is reached.

    Raises:
        DeltaError, OSError: it cannot be made.
    """
    DeltaTable.create(
        place,
        schema=schema.SCHEMAS[table],
        mode="ignore",
        name=table,
        description=json.dumps({"parquetry_schema": schema.SCHEMA_VERSION}),
        storage_options=options,
    )
