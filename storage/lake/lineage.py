"""Lineage of compacted shards: each holds the names of the shards that its compaction replaced.

So an index, or a repair, knows that such a shard has no rows of its own, whatever has become of the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import is_compacted

_KEY = b"parquetry.replaces"
"""key of the list in the metadata of a Parquet file"""


def note_of(replaced: Sequence[str]) -> dict[bytes, bytes]:
    """Return the metadata of a compacted shard.

    Args:
        replaced: names of the shards.
    """
    return {_KEY: json.dumps(list(replaced)).encode()}


def replaced_by(file: str) -> frozenset[str]:
    """Return the names of the shards that a compaction replaced by a shard and others.

    Args:
        file: path or URL of the shard.

    Returns:
        Empty for a shard that no compaction wrote, or that cannot be read.
    """
    if not is_compacted(file):
        return frozenset()
    # A search looks at the names alone, and starts without Arrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with filesystem_at(file).open(file) as stream:
            return frozenset(json.loads((pq.read_metadata(stream).metadata or {}).get(_KEY, b"[]")))
    except (OSError, pa.ArrowException):
        return frozenset()


def all_replaced_by(files: Iterable[str]) -> frozenset[str]:
    """Return the names of all shards that compactions replaced by the given ones."""
    return frozenset().union(*map(replaced_by, files))
