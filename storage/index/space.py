"""Update a search index to a version, and estimate the space that this takes.

Source of the numbers: measured, docs/decisions/0023-a-full-disk.md.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from parquetry.errors import IndexNotWritten
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.full_disk import is_full
from parquetry.storage.index.files import chunk_bytes
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import Snapshot

EMPTY_BYTES = 3_200_000
"""bytes of a nearly empty index"""
GROWTH_BYTES = 2_700_000
"""bytes by which a file grows at its first update to another version, however small the change"""
BYTES_PER_SHARD_BYTE = 1.5
"""bytes of an index for each byte of the chunk shards"""
CHUNK_BYTES = 1_000
"""bytes of an index file for each chunk of a segment from which its rows may move to one: short chunks with vectors of
256 numbers take 1.3 kB"""
AT_WORK = 2.0
"""bytes taken while an index is built, for each byte of the finished index"""


def bring_index(snapshot: Snapshot, search: SearchSettings) -> None:
    """Update the index to a published version.

    Raises:
        IndexNotWritten: the index cannot be written; says what to do, and on a full disk how much space to free.
        StorageError: the corpus cannot be read.
    """
    folder = IndexFolder(snapshot.layout, search)
    try:
        folder.refresh(snapshot)
    except IndexNotWritten as error:
        if not is_full(error):
            raise IndexNotWritten(f"{error}; the next search or refresh builds it") from error
        lacking = index_bytes(folder, chunk_bytes(snapshot)) - free_bytes(folder.path)
        room = f"about {math.ceil(lacking / 1e6)} MB" if lacking > 0 else "some space"
        raise IndexNotWritten(f"{error}; free {room}, and the next search or refresh builds it") from error


def index_bytes(folder: IndexFolder, shards: int, new: int = 0) -> int:
    """Estimate the free space in bytes that an update of the index to a version takes.

    Args:
        folder: folder of the index.
        shards: bytes of the chunk shards of the version.
        new: bytes of these that the version adds, as far as known.
    """
    wanted, files = BYTES_PER_SHARD_BYTE * shards, folder.files()
    if not files:
        return int(EMPTY_BYTES + AT_WORK * wanted)
    newest = files[0]
    fresh = max(BYTES_PER_SHARD_BYTE * new, wanted - max(0, newest.bytes - EMPTY_BYTES))
    # The older of two files is updated; it lacks what the newer one added. Otherwise, the newest is copied first.
    reused = next((file.own_bytes for file in files[1:] if file.segments == newest.segments), 0)
    begun = max(0, newest.own_bytes - reused)
    closes = newest.own_bytes + fresh >= CHUNK_BYTES * folder.division.chunks
    return int(begun + GROWTH_BYTES + AT_WORK * fresh + (newest.own_bytes if closes else 0))


def index_bytes_at_least(folder: IndexFolder, vectors: int) -> int:
    """Return the minimum space in bytes of an update to a version, if documents are what they seem.

    Args:
        folder: folder of the index.
        vectors: bytes of the vectors to be added.
    """
    files = folder.files()
    # A file that has grown before may have free blocks.
    begun = EMPTY_BYTES if not files else files[0].own_bytes if len(files) == 1 else 0
    return begun + vectors


def free_bytes(place: str | Path) -> int:
    """Return the free bytes on the disk of a path, which need not exist yet."""
    return shutil.disk_usage(existing(place)).free


def existing(place: str | Path) -> Path:
    """Return a path itself, or its nearest folder that exists."""
    found = Path(place).absolute()
    while not found.exists():
        found = found.parent
    return found
