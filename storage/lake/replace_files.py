"""Replace files of a table by others in one commit: the only change to a corpus that is not an addition."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from parquetry.errors import PublishConflict, StorageError
from parquetry.storage.files.filesystem import filesystem_at, one_line_error
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.commits import commit, files_of, open_table
from parquetry.storage.lake.shards import Shard


def replace_files(layout: Layout, table: Table, gone: Sequence[str], shards: Sequence[Shard], run_id: str) -> int:
    """Commit that shards replace files; the files are no longer named but stay in place.

    Commits of other writers that were decided before and made afterwards meet a conflict: to Delta Lake they were
    decided on rows that no longer exist.

    Args:
        layout: layout of the corpus.
        table: table of the files.
        gone: names of the files to replace.
        shards: the new files, already written.
        run_id: id of the run.

    Returns:
        A version of the table that contains the commit.

    Raises:
        PublishConflict: another run committed first; nothing was changed.
        StorageError: the commit failed; retrying is safe.
    """
    try:
        opened = open_table(layout, table)
        if not {layout.shard(table, name) for name in gone} <= set(files_of(opened)):
            raise PublishConflict(f"another run rewrote files of {table} meanwhile")
        return commit(layout, table, shards, {"run_id": run_id}, gone=gone, version=opened.version())
    except CommitFailedError as error:
        raise PublishConflict(f"another run changed {table} meanwhile: {error}") from error
    except (DeltaError, OSError) as error:
        what = f"{layout.table(table)} cannot be rewritten"
        raise disk_full(error, layout.table(table), what) or StorageError(f"{what}: {one_line_error(error)}") from error


def gave_way(layout: Layout, table: Table, before: datetime | None = None) -> set[str]:
    """Return the names of the files of a table that only earlier versions name.

    Args:
        layout: layout of the corpus.
        table: the table.
        before: only those that were replaced before this time, UTC; None for all.

    Raises:
        StorageError: this cannot be determined.
    """
    folder = layout.table(table)
    age = timedelta(0) if before is None else max(timedelta(0), datetime.now(UTC) - before)
    hours = math.ceil(age / timedelta(hours=1))
    try:
        opened = DeltaTable(folder, storage_options=filesystem_at(layout.root).table_options())
        found = opened.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False)
    except TableNotFoundError:
        # The corpus is older than this table.
        return set()
    except (DeltaError, OSError) as error:
        raise StorageError(f"unneeded files of {folder} cannot be determined: {one_line_error(error)}") from error
    return {posixpath.basename(name) for name in found}
