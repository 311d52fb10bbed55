"""Brings a search index to a version, and tells how much space that takes.

Source of the numbers: measured, docs/decisions/0023-a-full-disk.md.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from parquetry.errors import IndexNotWritten
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.full_disk import is_full
from parquetry.storage.files.places import files_at
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import Snapshot

EMPTY_BYTES = 3_200_000
"""of an index of next to nothing"""
GROWTH_BYTES = 2_700_000
"""that a file grows by when it is brought to another version for the first time, however little changed"""
BYTES_PER_SHARD_BYTE = 1.5
"""of an index, for each byte of the shards of chunks"""
AT_WORK = 2.0
"""bytes that are taken while an index is built, for each that it has in the end"""


def bring_index(snapshot: Snapshot, search: SearchSettings) -> None:
    """Bring the index to a version that is published.

    Raises:
        IndexNotWritten: it cannot be written; what to do, and how much has to be freed on a full disk.
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
    """Free space that bringing an index to a version takes, about.

    Args:
        folder: of the index.
        shards: bytes of the shards of chunks, of the version.
        new: of these, bytes that come with it, as far as that is known.
    """
    wanted, sizes = BYTES_PER_SHARD_BYTE * shards, folder.sizes()
    if not sizes:
        return int(EMPTY_BYTES + AT_WORK * wanted)
    fresh = max(BYTES_PER_SHARD_BYTE * new, wanted - max(0, sizes[0] - EMPTY_BYTES))
    # A file that is alone is copied. The older of two is taken, and lacks what came with the newer one.
    begun = sizes[0] if len(sizes) == 1 else max(0, sizes[0] - sizes[1])
    return int(begun + GROWTH_BYTES + AT_WORK * fresh)


def index_bytes_at_least(folder: IndexFolder, vectors: int) -> int:
    """Space that bringing an index to a version surely takes, if documents are what they seem.

    Args:
        folder: of the index.
        vectors: bytes of the vectors that come to it.
    """
    sizes = folder.sizes()
    # A file that has grown before may have room for what comes.
    begun = EMPTY_BYTES if not sizes else sizes[0] if len(sizes) == 1 else 0
    return begun + vectors


def chunk_bytes(snapshot: Snapshot) -> int:
    """Bytes of the shards of chunks of a version."""
    named = set(snapshot.files["chunks"])
    layout = snapshot.layout
    entries = files_at(layout.root).entries(layout.table("chunks"))
    return sum(entry.size for entry in entries if layout.shard("chunks", entry.name) in named)


def free_bytes(place: str | Path) -> int:
    """Bytes that the disk of a place has left, which need not exist yet."""
    return shutil.disk_usage(existing(place)).free


def existing(place: str | Path) -> Path:
    """A place, or the nearest folder above it that exists."""
    found = Path(place).absolute()
    while not found.exists():
        found = found.parent
    return found
