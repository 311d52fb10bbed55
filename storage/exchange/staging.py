"""Checked rows of a dump in temporary files, given back in groups of one document, in bounded memory.

The rows are divided among files by the hash of their document's path, so that each file fits in memory and holds all
rows of its documents. Sorting rows as wide as a vector takes more memory than is known before.
"""

from __future__ import annotations

import json
import random
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquetry import ids
from parquetry.embed.base import Vectors
from parquetry.importing.chunk import DocumentFacts, ImportedChunk
from parquetry.importing.documents import MOST_CHUNKS
from parquetry.importing.fields import facts_text
from parquetry.process_folder import process_folder
from parquetry.storage.files.full_disk import naming

_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("place", pa.string()),
        ("id", pa.string()),
        ("path", pa.string()),
        ("document_id", pa.string()),
        ("text", pa.string()),
        ("start", pa.int64()),
        ("index", pa.int64()),
        ("kind", pa.string()),
        ("page", pa.int64()),
        ("headings", pa.list_(pa.string())),
        ("tokens", pa.int64()),
        ("facts", pa.string()),
        ("vector", pa.binary()),
    ]
)
_ROWS = 4096
"""rows written at once"""
_TAKEN = 500
"""rows converted to objects at once"""
_FILE_BYTES = 24 << 20
"""bytes of the dump for each file"""
_MOST_FILES = 256
SAMPLE = 32
"""rows of the sample"""


class StagedRows:
    """The rows of a dump that passed their checks.

    A context manager: leaving it deletes the files.

    Args:
        size: bytes of the dump.
    """

    def __init__(self, size: int) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=process_folder())
        self._files = [Path(self._folder.name) / f"{number}.arrow" for number in range(_files(size))]
        self._writers: dict[int, tuple[pa.NativeFile, pa.ipc.RecordBatchStreamWriter]] = {}
        self._waiting: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._ids = array("Q")
        """beginning of the hash of each row's id; 0 without one"""
        self._random = random.Random(0)  # noqa: S311 - a sample that is the same each time
        self._sample: list[tuple[str, Vectors]] = []
        self.count = 0

    def add(self, place: str, chunk: ImportedChunk, vector: Vectors) -> None:
        """Add a row.

        Args:
            place: file and row.
            chunk: the chunk in it.
            vector: float32[dimension].
        """
        row = {
            "number": self.count,
            "place": place,
            "id": chunk.id,
            "path": chunk.path,
            "document_id": chunk.document_id,
            "text": chunk.text,
            "start": chunk.start,
            "index": chunk.index,
            "kind": chunk.kind,
            "page": chunk.page,
            "headings": list(chunk.headings),
            "tokens": chunk.tokens,
            "facts": facts_text(chunk.facts),
            "vector": vector.tobytes(),
        }
        self._waiting[_hash(chunk.path) % len(self._files)].append(row)
        self._ids.append(_hash(chunk.id) if chunk.id else 0)
        self._take_sample(chunk.text, vector)
        self.count += 1
        if self.count % _ROWS == 0:
            self._flush()

    def finish(self) -> None:
        """Finish adding rows."""
        self._flush()
        for sink, writer in self._writers.values():
            writer.close()
            sink.close()

    def duplicates(self) -> set[int]:
        """Return the numbers of the rows whose id an earlier row has."""
        hashes = np.frombuffer(self._ids, np.uint64)
        order = np.argsort(hashes, kind="stable")
        known = hashes[order]
        repeated = (known[1:] == known[:-1]) & (known[1:] != 0)
        return set(order[1:][repeated].tolist())

    def sample(self) -> tuple[list[str], Vectors]:
        """Return the texts and vectors of some rows, spread over the whole dump; the same ones each time."""
        return [text for text, _ in self._sample], np.array([vector for _, vector in self._sample], np.float32)

    def documents(self) -> Iterator[tuple[list[tuple[int, str]], list[ImportedChunk], Vectors]]:
        """Yield the rows of each path, in their order: number and place, chunk, and float32[chunks, dimension].

        Of a path with more than `MOST_CHUNKS` rows, one more than that is given.
        """
        for number in sorted(self._writers):
            yield from _documents(self._files[number])

    def _take_sample(self, text: str, vector: Vectors) -> None:
        if len(self._sample) < SAMPLE:
            self._sample.append((text, vector))
        elif (place := self._random.randrange(self.count + 1)) < SAMPLE:
            self._sample[place] = (text, vector)

    def _flush(self) -> None:
        with naming(self._folder.name):
            for number, rows in self._waiting.items():
                if number not in self._writers:
                    sink = pa.OSFile(str(self._files[number]), "wb")
                    self._writers[number] = sink, pa.ipc.new_stream(sink, _SCHEMA)
                self._writers[number][1].write_batch(pa.RecordBatch.from_pylist(rows, _SCHEMA))
        self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink, _ in self._writers.values():
            sink.close()
        self._folder.cleanup()


def _files(size: int) -> int:
    return min(_MOST_FILES, 1 + size // _FILE_BYTES)


def _hash(text: str) -> int:
    return int.from_bytes(ids.digest(text, size=8), "big") or 1


def _documents(file: Path) -> Iterator[tuple[list[tuple[int, str]], list[ImportedChunk], Vectors]]:
    """Yield the documents in one file."""
    rows: list[tuple[int, str]] = []
    chunks: list[ImportedChunk] = []
    vectors: list[Vectors] = []
    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
        table = stream.read_all()
    order = pc.sort_indices(table, sort_keys=[("path", "ascending"), ("number", "ascending")])
    for first in range(0, table.num_rows, _TAKEN):
        for row in table.take(order[first : first + _TAKEN]).to_pylist():
            if chunks and row["path"] != chunks[-1].path:
                yield rows, chunks, np.array(vectors, np.float32)
                rows, chunks, vectors = [], [], []
            if len(chunks) <= MOST_CHUNKS:
                rows.append((row.pop("number"), row.pop("place")))
                vectors.append(np.frombuffer(row.pop("vector"), np.float32))
                chunks.append(_chunk(row))
    yield rows, chunks, np.array(vectors, np.float32)


def _chunk(row: dict[str, Any]) -> ImportedChunk:
    told = {**row, "headings": tuple(row["headings"] or ()), "facts": DocumentFacts.parse(json.loads(row["facts"]))}
    return ImportedChunk(**told)
