"""The columns that a hit shows of a chunk, in memory: compressed records that several versions of an index share."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from parquetry.storage.database import Connection, reading
from parquetry.storage.index.vector_memory_keys import ChunkKeys
from parquetry.storage.index.vector_memory_space import DEAD_SHARE, LEAST_ROOM, NONE, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 16
"""records compressed together: half as many take 5 % more memory, twice as many 5 % less and twice the time to read"""
CODEC = "lz4_raw"
"""reads ten records in a fifth of the time that zstd takes, from half more memory"""
RECORD = """concat(json_array(kind, page, headings, start, "end", tokens), chr(10), text)"""
"""SQL of a record; the other columns of a hit differ between index files, or are held as arrays"""
_ENDS = struct.Struct(f"<{BLOCK}q")
"""end of each record of a block, at its beginning"""
_SLICE = 16_384
"""chunks read at a time"""


@dataclass(slots=True)
class RecordBlocks:
    """Records by slot. Slots are only ever added, so that earlier versions can be read meanwhile."""

    blocks: list[tuple[bytes, int]] = field(default_factory=list)
    """compressed bytes, and their number before"""
    used_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def count(self) -> int:
        """Number of slots; those behind the last record of a batch stay empty."""
        return BLOCK * len(self.blocks)

    def add(self, records: pa.Array) -> int:
        """Add a batch of records; return the slot of the first one."""
        import pyarrow as pa

        first, column = self.count, records.cast(pa.large_string())
        _, ends, content = column.buffers()
        offsets = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
        codec, held = pa.Codec(CODEC), memoryview(content or b"")
        for start in range(0, len(column), BLOCK):
            begin, *places = offsets[start : start + BLOCK + 1].tolist()
            head = _ENDS.pack(*(place - begin for place in places), *[0] * (BLOCK - len(places)))
            block = head + held[begin : places[-1]]
            self.blocks.append((codec.compress(block, asbytes=True), len(block)))
            self.used_bytes += len(self.blocks[-1][0])
        return first

    def read(self, slots: Sequence[int]) -> Iterator[bytes]:
        """Yield the records of slots."""
        import pyarrow as pa

        codec, opened = pa.Codec(CODEC), dict[int, bytes]()
        for slot in slots:
            number, place = divmod(slot, BLOCK)
            if number not in opened:
                opened[number] = codec.decompress(*self.blocks[number], asbytes=True)
            ends = _ENDS.unpack_from(opened[number])
            start = _ENDS.size + (ends[place - 1] if place else 0)
            yield opened[number][start : _ENDS.size + ends[place]]


@dataclass(frozen=True, slots=True)
class ChunkRecords:
    """The columns of chunks as one version of an index has them."""

    blocks: RecordBlocks
    """shared with other versions"""
    slots: Numbers
    """int32[chunks of the index file]: slot, or NONE for a chunk of a replaced revision"""
    keys: ChunkKeys
    docs: Numbers
    """int32[chunks of the index file]: number of the revision"""

    @property
    def bytes(self) -> int:
        return self.blocks.used_bytes + self.slots.nbytes

    def of(self, chunks: Sequence[int]) -> list[dict[str, Any]]:
        """Return the columns of chunks as `parquetry.storage.index.hit_columns.CHUNK_COLUMNS` names them."""
        numbers = np.asarray(chunks, np.int64)
        arrays = (self.slots, self.docs, self.keys.places, self.keys.revisions)
        slots, docs, places, revisions = (array[numbers].tolist() for array in arrays)
        rows = []
        for chunk, doc, place, revision, record in zip(
            chunks, docs, places, revisions, self.blocks.read(slots), strict=True
        ):
            columns, _, text = record.decode().partition("\n")
            kind, page, headings, start, end, tokens = json.loads(columns)
            rows.append(
                {
                    "chunk": chunk,
                    "doc": doc,
                    "kind": kind,
                    "page": page,
                    "headings": headings,
                    "start": start,
                    "end": end,
                    "text": text,
                    "chunk_index": place,
                    "tokens": tokens,
                    "revision": revision,
                }
            )
        return rows


def read_records(
    connection: Connection,
    keys: ChunkKeys,
    docs: Numbers,
    live: npt.NDArray[np.bool_],
    earlier: ChunkRecords | None,
    carried: Numbers,
) -> ChunkRecords:
    """Read the records of an index, reusing those that an earlier version has in memory.

    Args:
        connection: connection with the index as current database.
        keys: keys of the chunks of the index file.
        docs: int32[chunks of the index file]: number of the revision.
        live: bool[chunks of the index file]: False for chunks of replaced revisions.
        earlier: the records of an earlier version.
        carried: int32[chunks]: number of the same chunk in the index file of the earlier version, or NONE.
    """
    slots = np.full(len(live), NONE, np.int32)
    if earlier is not None:
        known = live & (carried != NONE)
        slots[known] = earlier.slots[carried[known]]
    missing = np.flatnonzero(live & (slots == NONE))
    blocks = RecordBlocks() if earlier is None else earlier.blocks
    if blocks.count + len(missing) - live.sum() > max(LEAST_ROOM, DEAD_SHARE * blocks.count):
        blocks, missing = RecordBlocks(), np.flatnonzero(live)
    with reading(), blocks.lock:
        for wanted, records in _records(connection, missing):
            first = blocks.add(records)
            slots[wanted] = np.arange(first, first + len(wanted), dtype=np.int32)
    return ChunkRecords(blocks, slots, keys, docs)


def _records(connection: Connection, chunks: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], pa.Array]]:
    """Yield chunks, in their order, with their records.

    Args:
        connection: connection with the index as current database.
        chunks: numbers of chunks, ascending.
    """
    start = 0
    while start < len(chunks):
        end = int(np.searchsorted(chunks, chunks[start] + _SLICE))
        wanted = chunks[start:end]
        table = connection.sql(
            f"""SELECT chunk, {RECORD} AS record FROM parts.chunks
            WHERE chunk BETWEEN {wanted[0]} AND {wanted[-1]}"""
        ).to_arrow_table()
        found = table.column("chunk").to_numpy()
        records = table.column("record").combine_chunks()
        if not np.array_equal(found, wanted):
            order = np.argsort(found)
            records = records.take(order[np.searchsorted(found, wanted, sorter=order)])
        yield wanted, records
        start = end
