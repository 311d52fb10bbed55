"""Find missing, truncated or changed files of a version: reads every byte of them."""

from __future__ import annotations

from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from posixpath import basename

from parquetry.storage.files.filesystem import sha256_of
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.checksums import recorded_hashes
from parquetry.storage.lake.damaged_shards import faulty_columns, is_whole
from parquetry.storage.lake.lake import Snapshot

_READERS = 8
"""files of an object store that are checked concurrently"""


def whole_files(snapshot: Snapshot) -> frozenset[str]:
    """Return the files of a snapshot that exist and are complete."""
    files = [file for table in TABLES for file in snapshot.files[table]]
    with ThreadPoolExecutor(1 if snapshot.layout.is_local else _READERS) as readers:
        return frozenset(file for file, whole in zip(files, readers.map(is_whole, files), strict=True) if whole)


def changed_files(snapshot: Snapshot, whole: Set[str]) -> dict[str, str]:
    """Return the files of a snapshot that do not hold what was written.

    Args:
        snapshot: snapshot with the files.
        whole: the complete files.

    Returns:
        file -> the columns that differ, as far as its pages show; empty if no page differs.

    Raises:
        StorageError: the object store could not be reached.
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
    # Files of earlier programs have no checksum, but may still be unreadable.
    unsigned = {file: faulty_columns(file) for file in sorted(whole - wanted.keys())}
    columns |= {file: names for file, names in unsigned.items() if names}
    return {file: ", ".join(names) for file, names in columns.items()}


def unusable_files(snapshot: Snapshot) -> frozenset[str]:
    """Return the files of a snapshot that are missing, truncated or changed.

    Raises:
        StorageError: the object store could not be reached.
    """
    whole = whole_files(snapshot)
    every = frozenset(file for table in TABLES for file in snapshot.files[table])
    return (every - whole) | changed_files(snapshot, whole).keys()
