"""Search indexes in the memory of a long-lived process.

A process holds one `VectorMemories`, which all of its searchers share. Of each index that is open, it holds the codes
and vectors, the columns of chunks and documents, and for small indexes the postings. The first index is read as a
whole; from one version to the next, only chunks that are not there yet are read. See
docs/decisions/0035-vectors-in-memory.md.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading, tuples
from parquetry.storage.index.hit_columns import DOCUMENT_COLUMNS
from parquetry.storage.index.open_index import OpenIndex, another_session, attached
from parquetry.storage.index.vector_memory_identities import Identities, read_identities
from parquetry.storage.index.vector_memory_keys import ChunkKeys
from parquetry.storage.index.vector_memory_postings import Postings, read_postings
from parquetry.storage.index.vector_memory_records import ChunkRecords, read_records
from parquetry.storage.index.vector_memory_rows import MOST_DOCUMENTS, MemoryRows, read_rows
from parquetry.storage.index.vector_memory_scan import EXTRA, is_available, load
from parquetry.storage.index.vector_memory_space import NONE, Numbers, SpaceMemory, read_space

log = logging.getLogger("parquetry")
READING_MEMORY = "512MB"
"""memory that DuckDB uses to read an index"""


@dataclass(frozen=True, slots=True)
class IndexMemory:
    """One version of an index in memory."""

    keys: ChunkKeys
    docs: Numbers
    """int32[chunks of the index file]: number of the revision"""
    spaces: Mapping[str, SpaceMemory]
    """vectors by embedder"""
    postings: Postings | None
    """None if there are too many"""
    identities: Identities | None
    """identities of documents; None if there are too many"""
    chunks: ChunkRecords
    """columns of chunks"""
    documents: MemoryRows | None
    """columns of documents; None if there are too many"""

    @property
    def bytes(self) -> int:
        """Bytes in use; buffers that are shared with other versions are counted in each."""
        keys = self.keys.revisions.nbytes + self.keys.places.nbytes + self.docs.nbytes
        others = (self.postings, self.identities, self.chunks, self.documents, *self.spaces.values())
        return keys + sum(part.bytes for part in others if part is not None)


def read_memory(connection: Connection, earlier: IndexMemory | None) -> IndexMemory:
    """Read an index into memory, except for what an earlier version of it has there.

    Args:
        connection: connection with the index as current database.
        earlier: an earlier version, if there is one.
    """
    with reading(), ThreadPoolExecutor(1, "index-records") as beside, closing(another_session(connection)) as session:
        keys, docs, live = _read_chunks(connection)
        carried = keys.carried(earlier.keys) if earlier else np.full(len(docs), NONE, np.int32)
        # They take as long as all the rest, and neither waits for the other.
        records = beside.submit(read_records, session, keys, docs, live, earlier.chunks if earlier else None, carried)
        known = earlier.spaces if earlier else {}
        spaces = {
            embedder: read_space(connection, number, dimension, len(docs), known.get(embedder), carried)
            for number, embedder, dimension in tuples(
                connection, "SELECT space, embedder, dimension FROM parts.spaces ORDER BY space"
            )
        }
        postings = read_postings(connection, docs)
        identities = read_identities(connection)
        documents = read_rows(connection, "parts.documents", DOCUMENT_COLUMNS, MOST_DOCUMENTS)
        return IndexMemory(keys, docs, spaces, postings, identities, records.result(), documents)


def _read_chunks(connection: Connection) -> tuple[ChunkKeys, Numbers, npt.NDArray[np.bool_]]:
    """Return the keys of the chunks of an index file, their revisions' numbers, and which of them are not replaced."""
    found = connection.execute("SELECT chunk, doc, revision, chunk_index FROM parts.chunks").fetchnumpy()
    order = np.asarray(found["chunk"])
    count = int(order.max(initial=NONE)) + 1
    docs, places, revisions = np.full(count, NONE, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int64)
    docs[order], places[order], revisions[order] = found["doc"], found["chunk_index"], found["revision"]
    live = np.ones(int(docs.max(initial=NONE)) + 2, np.bool_)
    live[[NONE, *(doc for (doc,) in tuples(connection, "SELECT doc FROM parts.dead"))]] = False
    return ChunkKeys(revisions, places), docs, live[docs]


class VectorMemories:
    """Memory of the open indexes of a process. Thread-safe."""

    def __init__(self) -> None:
        self._held: dict[int, IndexMemory] = {}
        """identity of an open index -> its memory, until the index is let go"""
        self._newest: IndexMemory | None = None
        self._reading = threading.Lock()

    def of(self, index: OpenIndex) -> IndexMemory:
        """Return an index in memory, read on first use; searches of other indexes go on meanwhile.

        Raises:
            StorageError: the index cannot be read.
        """
        held = self._held.get(id(index))
        if held is not None:
            return held
        with self._reading:
            held = self._held.get(id(index))
            if held is None:
                load()
                with _connection(index) as connection:
                    held = read_memory(connection, self._newest)
                self._held[id(index)] = self._newest = held
                weakref.finalize(index, self._held.pop, id(index), None).atexit = False
            return held

    @property
    def bytes(self) -> int:
        """Bytes in use for the newest index that was read."""
        return self._newest.bytes if self._newest else 0


@contextmanager
def _connection(index: OpenIndex) -> Iterator[Connection]:
    """Yield a connection that reads an index once.

    One of its own, because DuckDB keeps what it has read for as long as it is open, within most of the memory.
    """
    with closing(index.session()) as session:
        ((file,),) = tuples(session, "SELECT path FROM duckdb_databases() WHERE database_name = 'ix'")
        if not index.is_file:
            yield session
            return
        with attached(Path(file), read_only=True) as connection:
            # Under the same name there may be another file by now, if this one was found to be damaged.
            same = index.is_of(Path(file).with_suffix(".lease"))
            if same:
                connection.execute(f"SET memory_limit = '{READING_MEMORY}'")
            yield connection if same else session


def vector_memories() -> VectorMemories | None:
    """Return the memory for a long-lived process; None, told in the log, if the extra that it needs is missing."""
    if is_available():
        return VectorMemories()
    log.warning(
        "searches compare vectors in SQL, which takes several times as long as in memory: install parquetry[%s]", EXTRA
    )
    return None
