"""Which files of a version are missing, cut short, or not what was written: reads every byte of them."""

from __future__ import annotations

from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from posixpath import basename

from parquetry.storage.files.layout import TABLES
from parquetry.storage.files.places import sha256_of
from parquetry.storage.lake.checksums import recorded_hashes
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.shards import faulty_columns, is_whole

_READERS = 8
"""files of an object store that are looked into at a time"""


def whole_files(snapshot: Snapshot) -> frozenset[str]:
    """The files of a snapshot that are there and complete."""
    files = [file for table in TABLES for file in snapshot.files[table]]
    with ThreadPoolExecutor(1 if snapshot.layout.is_local else _READERS) as readers:
        return frozenset(file for file, whole in zip(files, readers.map(is_whole, files), strict=True) if whole)


def changed_files(snapshot: Snapshot, whole: Set[str]) -> dict[str, str]:
    """The files of a snapshot that are not what was written.

    Args:
        snapshot: whose files they are.
        whole: those that are complete.

    Returns:
        file -> the columns that differ, as far as its pages tell; empty if they do not.

    Raises:
        StorageError: the object store could not be asked.
    """
    wanted = {
        snapshot.layout.shard(table, name): digest
        for table in TABLES
        for name, digest in recorded_hashes(
            snapshot.layout, table, {basename(file) for file in snapshot.files[table]}
        ).items()
    }
    known = sorted(whole & wanted.keys())
    with ThreadPoolExecutor(1 if snapshot.layout.is_local else _READERS) as readers:
        digests = zip(known, readers.map(sha256_of, known), strict=True)
        columns = {file: faulty_columns(file) for file, digest in digests if digest != wanted[file]}
    # Files of earlier programs have no checksum, but may not be readable.
    unsigned = {file: faulty_columns(file) for file in sorted(whole - wanted.keys())}
    columns |= {file: names for file, names in unsigned.items() if names}
    return {file: ", ".join(names) for file, names in columns.items()}


def unusable_files(snapshot: Snapshot) -> frozenset[str]:
    """The files of a snapshot that are missing, cut short, or not what was written.

    Raises:
        StorageError: the object store could not be asked.
    """
    whole = whole_files(snapshot)
    every = frozenset(file for table in TABLES for file in snapshot.files[table])
    return (every - whole) | changed_files(snapshot, whole).keys()
