"""Index files built from a corpus, in as little memory as their chunks take."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import duckdb

from parquetry.errors import first_line
from parquetry.storage.database import Connection
from parquetry.storage.index.build import MemoryOf
from parquetry.storage.index.files import delete
from parquetry.storage.index.open_index import BUILD_MEMORY, build, memory_of, written
from parquetry.storage.index.segments import Division
from parquetry.storage.lake.lake import Snapshot

log = logging.getLogger("parquetry")


def built(path: Path, snapshot: Snapshot, language: str, division: Division | None = None) -> list[str]:
    """Build an index file from the corpus; return the names of its segments.

    Args:
        path: index file; replaced if it is there.
        snapshot: snapshot of the version.
        language: language of the words.
        division: where and when its rows move to segments; None to keep all in the file.
    """

    def made(memory: MemoryOf | None, connection: Connection) -> bool:
        return build(connection, snapshot, language, division, memory)

    try:
        delete(path)
        return written(path, partial(made, memory_of), BUILD_MEMORY[0])
    except duckdb.OutOfMemoryException as error:
        tell_second_attempt(error)
    delete(path)
    return written(path, partial(made, None), BUILD_MEMORY[-1])


def tell_second_attempt(error: duckdb.OutOfMemoryException) -> None:
    """Tell that an index is written again with more memory."""
    log.warning("the search index did not fit into memory and is written again: %s", first_line(error))
