"""The Delta tables of a corpus: check that they exist, and create them."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from parquetry.storage.files.filesystem import filesystem_at, last_folder
from parquetry.storage.files.layout import SCHEMA_VERSION, Layout, Table
from parquetry.storage.lake.staging import commit_durably


def is_table(layout: Layout, table: Table) -> bool:
    """True if a Delta table exists; `DeltaTable.is_deltatable` would block all other threads during a store request.

    Raises:
        SettingsError: a file stands at the path of the corpus.
    """
    endings = (".json", ".checkpoint.parquet")
    if layout.is_local:
        last_folder(layout.root)
        # Without a look at each of thousands of files.
        with suppress(FileNotFoundError), os.scandir(layout.log(table)) as found:
            return any(entry.name.endswith(endings) for entry in found)
        return False
    entries = filesystem_at(layout.root).entries(layout.log(table))
    return any(entry.name.endswith(endings) for entry in entries)


def make_table(layout: Layout, table: Table) -> None:
    """Create a missing table.

    Raises:
        DeltaError, OSError: the table cannot be created.
    """
    if is_table(layout, table):
        return

    try:
        if layout.is_local:
            commit_durably(layout, table, lambda place: create_table(place, table, None))
        else:
            create_table(layout.table(table), table, filesystem_at(layout.root).table_options())
    except (DeltaError, OSError):
        # Another process has created it meanwhile, or an earlier request of ours whose response was lost.
        if not is_table(layout, table):
            raise


def create_table(place: str, table: Table, options: dict[str, str] | None) -> None:
    """Write the first commit of a table through delta-rs.

    Args:
        place: folder or URL of the table.
        table: the table to create.
        options: storage options of the place.

    Raises:
        DeltaError, OSError: the table cannot be created.
    """
    from parquetry.storage.lake import schema

    DeltaTable.create(
        place,
        schema=schema.SCHEMAS[table],
        mode="ignore",
        name=table,
        description=json.dumps({"parquetry_schema": SCHEMA_VERSION}),
        storage_options=options,
    )
