"""Tell whole shards from damaged ones, and read the latter as far as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.storage.files.filesystem import filesystem_at

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def is_whole(path: str) -> bool:
    """True if a file is a complete Parquet file, judged by its footer.

    Raises:
        StorageError: the object store could not be reached.
    """
    import pyarrow.parquet as pq

    try:
        with filesystem_at(path).open(path) as stream:
            pq.read_metadata(stream)
    except _unreadable():
        return False
    return True


def faulty_columns(path: str) -> list[str]:
    """Return the columns of a Parquet file with a damaged page.

    Empty where pages have no checksum, or where the footer can no longer be read.

    Raises:
        StorageError: the object store could not be reached.
    """
    import pyarrow.parquet as pq

    with filesystem_at(path).open(path) as stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            names = file.schema_arrow.names
        except _unreadable():
            return []
        return [name for name in names if not _is_readable(file, name)]


def readable_values(path: str, column: str) -> list[str]:
    """Return the values of a string column of a possibly damaged Parquet file; empty if that column is damaged.

    Raises:
        StorageError: the object store could not be reached.
    """
    import pyarrow.parquet as pq

    with filesystem_at(path).open(path) as stream:
        try:
            values: list[str] = pq.read_table(stream, columns=[column], page_checksum_verification=True)[
                column
            ].to_pylist()
        except _unreadable():
            return []
        except KeyError:
            return []
    return values


def _is_readable(file: pq.ParquetFile, column: str) -> bool:
    try:
        for _ in file.iter_batches(columns=[column]):
            pass
    except _unreadable():
        return False
    return True


def _unreadable() -> tuple[type[Exception], ...]:
    """Return the exceptions raised by reading a file that is no longer valid Parquet."""
    import pyarrow as pa

    return pa.ArrowException, OSError, ValueError
