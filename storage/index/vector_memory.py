"""Search indexes in the memory of a long-lived process.

A process holds one `VectorMemories`, which all of its searchers share. Of each index that is open, it holds the codes
and vectors, the columns of documents, and for small indexes the postings and the columns of chunks. The first index is
read as a whole; from one version to the next, only vectors that are not there yet are read. See
docs/decisions/0035-vectors-in-memory.md.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading, tuples
from parquetry.storage.index.open_index import OpenIndex, attached
from parquetry.storage.index.vector_memory_postings import Postings, read_postings
from parquetry.storage.index.vector_memory_rows import MOST_CHUNKS, MOST_DOCUMENTS, MemoryRows, read_rows
from parquetry.storage.index.vector_memory_scan import EXTRA, is_available, load
from parquetry.storage.index.vector_memory_space import NONE, Numbers, SpaceMemory, read_space

log = logging.getLogger("parquetry")
DOCUMENT_COLUMNS = (
    "doc, document_id, uri, path, filename, title, namespace, source, media_type, modified_at, tags, metadata"
)
"""columns of a document that a hit shows"""
CHUNK_COLUMNS = 'rowid AS chunk, doc, kind, page, headings, start, "end", text, chunk_index, tokens, revision'
"""columns of a chunk that a hit shows"""
READING_MEMORY = "512MB"
"""memory that DuckDB uses to read an index"""
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""odd number near 2^64 divided by the golden ratio: spreads small numbers over all bits (Knuth, TAOCP 3, 6.4)"""


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """Identity of each chunk of an index file. Numbers of chunks and revisions differ between two files."""

    revisions: npt.NDArray[np.int64]
    """int64[chunks]"""
    places: Numbers
    """int32[chunks]: index of the chunk within its revision"""

    def carried(self, earlier: ChunkKeys) -> Numbers:
        """Return int32[chunks]: number of the same chunk in an earlier file, or NONE.

        Two files begin alike, because chunks are only ever appended; beyond that, chunks are looked up.
        """
        count, before = len(self.places), len(earlier.places)
        common = min(count, before)
        differing = (self.revisions[:common] != earlier.revisions[:common]) | (
            self.places[:common] != earlier.places[:common]
        )
        alike = int(differing.argmax()) if differing.any() else common
        found = np.full(count, NONE, np.int32)
        found[:alike] = np.arange(alike, dtype=np.int32)
        if alike < min(count, before):
            known = earlier._mixed(alike)
            order = np.argsort(known)
            at = np.minimum(np.searchsorted(known, self._mixed(alike), sorter=order), len(order) - 1)
            candidate = alike + order[at]
            same = (earlier.revisions[candidate] == self.revisions[alike:]) & (
                earlier.places[candidate] == self.places[alike:]
            )
            found[alike:] = np.where(same, candidate, NONE)
        return found

    def _mixed(self, start: int) -> npt.NDArray[np.uint64]:
        """Return one number for each chunk from `start` on; two chunks with one number are told apart by the keys."""
        mixed: npt.NDArray[np.uint64] = self.revisions[start:].astype(np.uint64) ^ (
            self.places[start:].astype(np.uint64) * _MIXER
        )
        return mixed


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
    chunks: MemoryRows | None
    """columns of chunks; None if there are too many"""
    documents: MemoryRows | None
    """columns of documents; None if there are too many"""

    @property
    def bytes(self) -> int:
        """Bytes in use; buffers that are shared with other versions are counted in each."""
        keys = self.keys.revisions.nbytes + self.keys.places.nbytes + self.docs.nbytes
        others = (part.bytes for part in (self.postings, self.chunks, self.documents) if part is not None)
        return keys + sum(space.bytes for space in self.spaces.values()) + sum(others)


def read_memory(connection: Connection, earlier: IndexMemory | None) -> IndexMemory:
    """Read an index into memory, except for what an earlier version of it has there.

    Args:
        connection: connection with the index as current database.
        earlier: an earlier version, if there is one.
    """
    with reading():
        found = connection.execute("SELECT rowid AS row, doc, revision, chunk_index FROM parts.chunks").fetchnumpy()
        order = np.asarray(found["row"])
        count = int(order.max(initial=-1)) + 1
        docs, places = np.full(count, NONE, np.int32), np.zeros(count, np.int32)
        revisions = np.zeros(count, np.int64)
        docs[order], places[order], revisions[order] = found["doc"], found["chunk_index"], found["revision"]
        keys = ChunkKeys(revisions, places)
        carried = keys.carried(earlier.keys) if earlier else np.full(count, NONE, np.int32)
        known = earlier.spaces if earlier else {}
        spaces = {
            embedder: read_space(connection, number, dimension, count, known.get(embedder), carried)
            for number, embedder, dimension in tuples(
                connection, "SELECT space, embedder, dimension FROM parts.spaces ORDER BY space"
            )
        }
        return IndexMemory(
            keys,
            docs,
            spaces,
            read_postings(connection, docs),
            read_rows(connection, "parts.chunks", CHUNK_COLUMNS, MOST_CHUNKS),
            read_rows(connection, "parts.documents", DOCUMENT_COLUMNS, MOST_DOCUMENTS),
        )


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
