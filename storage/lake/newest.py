"""A cheap look for publishes that happened since a known version."""

from __future__ import annotations

from pathlib import Path

from deltalake.exceptions import DeltaError

from parquetry.errors import StorageError
from parquetry.storage.files.filesystem import one_line_error
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.commits import open_table
from parquetry.storage.lake.staging import commit_name


def is_newest(layout: Layout, version: int) -> bool:
    """True if a known version is there and none follows it.

    Two looks at the disk for a local corpus, whatever its size; a listing on an object store.

    Args:
        layout: layout of the corpus.
        version: the known version.

    Raises:
        StorageError: an object store cannot be read.
    """
    if not layout.is_local:
        return _remote_version(layout) == version
    log = Path(layout.log("documents"))
    return not (log / commit_name(version + 1)).exists() and (log / commit_name(version)).exists()


def _remote_version(layout: Layout) -> int:
    try:
        return int(open_table(layout, "documents").version())
    except (DeltaError, OSError) as error:
        raise StorageError(f"corpus {layout.root} cannot be read: {one_line_error(error)}") from error
