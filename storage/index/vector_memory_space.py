"""The vectors of one embedder in memory: append-only buffers that several versions of an index share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection
from parquetry.storage.index.signatures import signature_columns
from parquetry.storage.index.vector_memory_scan import Codes

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int32]
NONE = -1
"""number that stands for no chunk, no document, or no slot"""
ROOM = 2.0
"""places of new buffers for each vector that is there; untouched ones take address space, but no memory"""
LEAST_ROOM = 100_000
"""minimum number of free places in new buffers"""
DEAD_SHARE = 0.3
"""share of unused slots above which buffers are filled anew"""
_SLICE = 65_536
"""chunks read at a time"""


@dataclass(slots=True)
class Buffers:
    """Codes and vectors by slot. Slots are only ever added, so that earlier versions can be searched meanwhile."""

    codes: Codes
    """uint8[places, bytes of a code]"""
    vectors: Vectors
    """float32[places, dimension]"""
    inverse_norms: npt.NDArray[np.float64]
    """float64[places]: 1 / length of the vector; 0 for a vector of zeros"""
    count: int = 0
    """number of slots in use"""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def for_vectors(cls, count: int, dimension: int) -> Buffers:
        """Return empty buffers with room for a number of vectors and for those of later versions."""
        places = max(int(ROOM * count), count + LEAST_ROOM)
        return cls(
            np.empty((places, 8 * len(signature_columns(dimension))), np.uint8),
            np.empty((places, dimension), np.float32),
            np.empty(places, np.float64),
        )

    def has_room(self, more: int) -> bool:
        return self.count + more <= len(self.vectors)

    def add(self, codes: Codes, vectors: Vectors) -> None:
        """Fill the next slots."""
        start, end = self.count, self.count + len(vectors)
        self.codes[start:end], self.vectors[start:end] = codes, vectors
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        self.inverse_norms[start:end] = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
        self.count = end

    @property
    def used_bytes(self) -> int:
        """Bytes of the slots in use."""
        return self.count * sum(array.itemsize * array[:1].size for array in (self.codes, self.vectors)) + (
            8 * self.count
        )


@dataclass(frozen=True, slots=True)
class SpaceMemory:
    """The vectors of one embedder as one version of an index has them."""

    buffers: Buffers
    """shared with other versions"""
    chunks: Numbers
    """int32[slots]: number of the chunk in the index file, or NONE"""
    docs: Numbers
    """int32[slots]: number of its revision in the index file, or NONE"""
    slots: Numbers
    """int32[chunks of the index file]: slot, or NONE for a chunk without a vector or of a replaced revision"""
    live: int
    """number of slots that hold a chunk"""

    @property
    def count(self) -> int:
        """Number of slots that this version looks at."""
        return len(self.chunks)

    @property
    def dimension(self) -> int:
        return int(self.buffers.vectors.shape[1])

    @property
    def bytes(self) -> int:
        return self.buffers.used_bytes + self.chunks.nbytes + self.docs.nbytes + self.slots.nbytes


def read_space(
    connection: Connection, number: int, dimension: int, rows: int, earlier: SpaceMemory | None, carried: Numbers
) -> SpaceMemory:
    """Read the vectors of one embedder from an index, reusing those that an earlier version has in memory.

    Args:
        connection: connection with the index as current database.
        number: number of the vector space.
        dimension: dimension of its vectors.
        rows: number of chunks in the index file.
        earlier: the vectors in an earlier version.
        carried: int32[rows]: number of the same chunk in the index file of the earlier version, or NONE.
    """
    found = connection.execute(
        f"SELECT chunk, doc FROM parts.codes_{number} ANTI JOIN parts.dead USING (doc) ORDER BY chunk"
    ).fetchnumpy()
    chunks, docs = (np.asarray(found[name], np.int32) for name in ("chunk", "doc"))
    slots = np.full(rows, NONE, np.int32)
    if earlier is not None:
        before = carried[chunks]
        known = before != NONE
        slots[chunks[known]] = earlier.slots[before[known]]
    missing = chunks[slots[chunks] == NONE]
    if earlier is None or not _is_worth_sharing(earlier.buffers, len(chunks), len(missing)):
        buffers, missing = Buffers.for_vectors(len(chunks), dimension), chunks
    else:
        buffers = earlier.buffers
    with buffers.lock:
        if not buffers.has_room(len(missing)):
            # Another version has taken the room meanwhile.
            return read_space(connection, number, dimension, rows, None, carried)
        first = buffers.count
        for codes, vectors in _vectors(connection, number, dimension, missing):
            buffers.add(codes, vectors)
        slots[missing] = np.arange(first, buffers.count, dtype=np.int32)
        count = buffers.count
    chunk_of, doc_of = np.full(count, NONE, np.int32), np.full(count, NONE, np.int32)
    chunk_of[slots[chunks]], doc_of[slots[chunks]] = chunks, docs
    return SpaceMemory(buffers, chunk_of, doc_of, slots, len(chunks))


def _is_worth_sharing(buffers: Buffers, live: int, missing: int) -> bool:
    used = buffers.count + missing
    return buffers.has_room(missing) and used - live <= max(LEAST_ROOM, DEAD_SHARE * used)


def _vectors(connection: Connection, number: int, dimension: int, chunks: Numbers) -> Iterator[tuple[Codes, Vectors]]:
    """Yield codes and vectors of chunks, in their order.

    Args:
        connection: connection with the index as current database.
        number: number of the vector space.
        dimension: dimension of its vectors.
        chunks: numbers of chunks, ascending; each has a vector.
    """
    words = signature_columns(dimension)
    start = 0
    while start < len(chunks):
        low = int(chunks[start])
        end = int(np.searchsorted(chunks, low + _SLICE))
        wanted = chunks[start:end]
        here = f"BETWEEN {low} AND {int(wanted[-1])}"
        coded = connection.execute(
            f"SELECT chunk, {', '.join(words)} FROM parts.codes_{number} WHERE chunk {here} ORDER BY chunk"
        ).fetchnumpy()
        chosen = np.searchsorted(np.asarray(coded["chunk"]), wanted)
        codes = np.stack([np.asarray(coded[word], "<i8")[chosen] for word in words], axis=1)
        table = connection.sql(
            f"""SELECT chunk, vector_{number} AS vector FROM parts.chunks
            WHERE chunk {here} AND vector_{number} IS NOT NULL"""
        ).to_arrow_table()
        vectors = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = vectors.reshape(-1, dimension)
        found = table.column("chunk").to_numpy()
        if not np.array_equal(found, wanted):
            order = np.argsort(found)
            vectors = vectors[order[np.searchsorted(found, wanted, sorter=order)]]
        yield codes.view(np.uint8), vectors
        start = end
