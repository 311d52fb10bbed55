"""Checked rows of a dump in a temporary Parquet file, given back in groups of one document, in bounded memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa

from parquetry.embed.base import Vectors
from parquetry.errors import SettingsError, first_line
from parquetry.importing.chunk import DocumentFacts, ImportedChunk
from parquetry.importing.documents import MOST_CHUNKS
from parquetry.importing.fields import facts_text
from parquetry.storage.database import Connection, open_duckdb, sql_string
from parquetry.storage.files.full_disk import disk_full, naming

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
_ROWS = 1000
"""rows written and read at once"""
_MEMORY = "400MB"
"""memory of the sort; the rest is spilled to disk"""


class StagedRows:
    """The rows of a dump that passed their checks.

    A context manager: leaving it deletes the file.
    """

    def __init__(self) -> None:
        import pyarrow.parquet as pq

        self._folder = tempfile.TemporaryDirectory(prefix="parquetry-import-")
        self._file = Path(self._folder.name) / "rows.parquet"
        self._writer = pq.ParquetWriter(self._file, _SCHEMA, compression={"text": "zstd", "facts": "zstd"})
        self._waiting: list[dict[str, Any]] = []
        self._connection: Connection | None = None
        self.count = 0

    def add(self, place: str, chunk: ImportedChunk, vector: Vectors) -> None:
        """Add a row.

        Args:
            place: file and row.
            chunk: the chunk in it.
            vector: float32[dimension].
        """
        self._waiting.append(
            {
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
        )
        self.count += 1
        if len(self._waiting) >= _ROWS:
            self._flush()

    def finish(self) -> None:
        """Finish adding rows."""
        self._flush()
        self._writer.close()
        self._connection = open_duckdb()
        self._connection.execute(f"SET memory_limit = '{_MEMORY}'")
        self._connection.execute(f"SET temp_directory = {sql_string(self._folder.name)}")
        self._connection.execute("SET preserve_insertion_order = false")

    def duplicates(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows whose id an earlier row has: number, place, and place of the earlier one."""
        query = f"""SELECT r.number, r.place, f.place FROM {self._rows} AS r
            JOIN (SELECT id, min(number) AS first, count(*) AS many, arg_min(place, number) AS place FROM {self._rows}
                WHERE id <> '' GROUP BY id HAVING many > 1) AS f USING (id)
            WHERE r.number <> f.first ORDER BY r.number"""
        yield from self._each(query)

    def sample(self, most: int) -> tuple[list[str], Vectors]:
        """Return the texts and vectors of some rows, spread over the whole dump; the same ones each time."""
        step = max(1, self.count // most)
        query = (
            f"SELECT text, vector FROM {self._rows} WHERE number % {step} = {step // 2} ORDER BY number LIMIT {most}"
        )
        found = list(self._each(query))
        texts = [text for text, _ in found]
        return texts, np.array([np.frombuffer(vector, np.float32) for _, vector in found], np.float32)

    def documents(self) -> Iterator[tuple[list[int], list[ImportedChunk], Vectors]]:
        """Yield the rows of each path, in their order: their numbers, their chunks, and float32[chunks, dimension].

        Of a path with more than `MOST_CHUNKS` rows, one more than that is given.
        """
        numbers: list[int] = []
        chunks: list[ImportedChunk] = []
        vectors: list[Vectors] = []
        columns = ", ".join(f'"{name}"' for name in _SCHEMA.names if name != "place")
        for number, *values, facts, vector in self._each(f"SELECT {columns} FROM {self._rows} ORDER BY path, number"):
            chunk = _chunk(values, facts)
            if chunks and chunk.path != chunks[-1].path:
                yield numbers, chunks, np.array(vectors, np.float32)
                numbers, chunks, vectors = [], [], []
            if len(chunks) <= MOST_CHUNKS:
                numbers.append(number)
                chunks.append(chunk)
                vectors.append(np.frombuffer(vector, np.float32))
        if chunks:
            yield numbers, chunks, np.array(vectors, np.float32)

    @property
    def _rows(self) -> str:
        return f"read_parquet({sql_string(str(self._file))})"

    def _each(self, query: str) -> Iterator[tuple[Any, ...]]:
        if self._connection is None:
            raise ValueError("the rows are not complete")
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(query)
                while some := cursor.fetchmany(_ROWS):
                    yield from some
        except duckdb.Error as error:
            what = "the rows of the dump could not be sorted"
            full = disk_full(error, self._folder.name, what)
            raise full or SettingsError(f"{what}: {first_line(error)}") from error

    def _flush(self) -> None:
        if self._waiting:
            with naming(self._folder.name):
                self._writer.write_table(pa.Table.from_pylist(self._waiting, _SCHEMA))
            self._waiting = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()
        self._writer.close()
        self._folder.cleanup()


def _chunk(values: list[Any], facts: str) -> ImportedChunk:
    identity, path, document_id, text, start, index, kind, page, headings, tokens = values
    return ImportedChunk(
        identity,
        path,
        document_id,
        text,
        start,
        index,
        kind,
        page,
        tuple(headings or ()),
        tokens,
        DocumentFacts.parse(json.loads(facts)),
    )
