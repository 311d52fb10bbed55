"""Delete what a failed run wrote, to free the disk."""

from __future__ import annotations

from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.lake import Lake


def discard_files(lake: Lake, run_id: str, *, vectors: bool) -> None:
    """Delete the files that a run wrote and no commit names.

    Args:
        lake: the corpus.
        run_id: id of a failed run.
        vectors: True to also delete files with chunks and their vectors, which later runs would find by text hash.

    Raises:
        OSError, StorageError: the files cannot be found or deleted.
    """
    layout, named = lake.layout, lake.snapshot().files
    files = filesystem_at(layout.root)
    for table in TABLES:
        if table == "chunks" and not vectors:
            continue
        for entry in files.entries(layout.table(table)):
            path = layout.shard(table, entry.name)
            if entry.name.startswith(f"{run_id}-") and not entry.is_folder and path not in named[table]:
                files.delete(path)
